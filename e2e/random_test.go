package e2e

import (
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRandom runs the whole system in a way that nobody thought of: buyers who
// send twice, hang up, change their minds and come back; two shops that are
// killed and opened again; a line to Stripe that drops, holds and fails calls;
// events that are lost, repeated and late; orders that expire and keys that are
// reaped while all of it runs. When it is over the completer ends what is left,
// and then the invariants must hold.
//
// The seed says what everybody tries, and in which order; the machine says who
// is first. PAYONCE_SEED repeats a run, RANDOM_RUNS and RANDOM_STEPS make more
// and longer ones.
func TestRandom(t *testing.T) {
	t.Parallel()
	runs, steps := number(t, "RANDOM_RUNS", 2), number(t, "RANDOM_STEPS", 8)
	seed := uint64(number(t, "PAYONCE_SEED", int(rand.Uint32())))
	for run := range runs {
		seed := seed + uint64(run)
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("again: PAYONCE_SEED=%d RANDOM_RUNS=1 RANDOM_STEPS=%d go test -run TestRandom ./e2e", seed, steps)
				}
			}()
			w := newWorld(t, seed)
			w.run(t, steps)
			w.settle(t)
			requireInvariants(t, w.deployment)
			t.Log(w.story(t))
			w.forgetAndAskAgain(t)
		})
	}
	t.Logf("PAYONCE_SEED=%d", seed)
}

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	said := os.Getenv(variable)
	if said == "" {
		return otherwise
	}
	n, err := strconv.Atoi(said)
	require.NoError(t, err, variable)
	return n
}

// world is one run of the whole system.
type world struct {
	*deployment
	seed   uint64
	buyers []*buyer

	mu   sync.Mutex
	now  [2]*shop        // the shops that are open
	aged map[string]bool // keys that may have been reaped

	held []func() // ends what is held up
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	d := deploy(t, "PROVIDER_TIMEOUT=2s", "LEASE=5s", "COMPLETER_INTERVAL=200ms", "WAIT=100ms")
	w := &world{deployment: d, seed: seed, aged: map[string]bool{}}
	for i := range w.now {
		w.now[i] = d.open(t)
	}
	for i := range 4 {
		w.buyers = append(w.buyers, &buyer{world: w, customer: d.customer(t, w.now[i%2]), number: i})
	}
	return w
}

// dice are thrown for one step of one actor: they do not depend on what others
// have done by then.
func (w *world) dice(actor, step int) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, uint64(actor)<<32|uint64(step)))
}

// run lets the buyers buy. Whenever two of their steps are done, something else
// goes wrong.
func (w *world) run(t *testing.T, steps int) {
	var buying sync.WaitGroup
	did := make(chan struct{}, len(w.buyers)*steps)
	for _, b := range w.buyers {
		buying.Go(func() {
			for step := range steps {
				b.act(w.dice(b.number, step))
				did <- struct{}{}
			}
		})
	}
	go func() { buying.Wait(); close(did) }()
	for step := 0; ; step++ {
		if _, more := <-did; !more {
			break
		}
		if step%2 == 0 {
			w.breakSomething(t, w.dice(len(w.buyers), step))
		}
	}
	w.letGo()
}

func (w *world) shop(i int) *shop {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now[i]
}

// settle mends everything and lets the completer end what is left.
func (w *world) settle(t testing.TB) {
	for _, kind := range []string{"rules", "delivery_rules"} {
		var rules []struct{ ID string }
		w.stripe.call(t, http.MethodGet, "/_sim/"+kind, nil, &rules)
		for _, rule := range rules {
			w.stripe.call(t, http.MethodDelete, "/_sim/"+kind+"/"+rule.ID, nil, nil)
		}
	}
	w.twoDaysPass(t)
	defer func() {
		if t.Failed() {
			t.Log("left:", sql[string](t, w.deployment, `
				SELECT coalesce(string_agg(k::text, E'\n'), '') FROM idempotency_keys k WHERE status = 'in_progress'`),
				sql[string](t, w.deployment, `
				SELECT coalesce(string_agg(p::text, E'\n'), '') FROM payments p WHERE status IN ('pending', 'requires_action', 'processing')`),
				sql[string](t, w.deployment, `SELECT coalesce(string_agg(r::text, E'\n'), '') FROM refunds r WHERE status = 'pending'`))
		}
	}()
	eventually(t, "the completer has ended what was left", func() bool {
		// A row that was given up in the storm is given back, as by "shop stuck --ask".
		w.execute(t, `UPDATE idempotency_keys SET completer_tries = 0 WHERE status = 'in_progress' AND completer_tries > 0 AND lease_until < clock_timestamp()`)
		for _, table := range []string{"payments", "refunds", "orders"} {
			w.execute(t, `UPDATE `+table+` SET asks = 0 WHERE asks > 3`)
		}
		w.lapseIdle(t)
		return sql[int](t, w.deployment, `
			SELECT (SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress')
			     + (SELECT count(*) FROM payments WHERE status IN ('pending', 'requires_action', 'processing'))
			     + (SELECT count(*) FROM refunds WHERE status = 'pending')
			     + (SELECT count(*) FROM orders WHERE status = 'open' AND expires_at < clock_timestamp())`) == 0
	})
	w.forgetAged()
}

// story is what a run was made of.
func (w *world) story(t testing.TB) string {
	return sql[string](t, w.deployment, `
		SELECT (SELECT count(*) FROM orders) || ' orders, '
		    || (SELECT string_agg(n || ' ' || status, ', ') FROM (SELECT status, count(*) AS n FROM payments GROUP BY status ORDER BY status) AS p) || '; '
		    || (SELECT count(*) FROM refunds) || ' refunds, ' || (SELECT count(*) FROM events) || ' events, '
		    || (SELECT coalesce(sum(attempt - 1), 0) FROM idempotency_keys) || ' takeovers, '
		    || (SELECT count(*) FROM orders WHERE generation > 1) || ' with a second PaymentIntent, '
		    || (SELECT count(*) FROM orders WHERE status = 'expired') || ' expired'`)
}

// twoDaysPass lets so much time pass for refunds that nothing which was sent for
// them can still be on its way, and that Stripe has forgotten their keys: until
// then a refund that Stripe answered with a stored 500 is neither done nor not.
func (w *world) twoDaysPass(t testing.TB) {
	eventually(t, "nothing is on its way to Stripe", func() bool {
		for _, r := range w.stripe.received(t) {
			if !r.Done && r.Method == http.MethodPost && r.Path == refundPath {
				return false
			}
		}
		return true
	})
	for _, id := range strings.Fields(sql[string](t, w.deployment, `SELECT coalesce(string_agg(id, ' '), '') FROM refunds WHERE status = 'pending'`)) {
		w.stripe.call(t, http.MethodPost, "/_sim/prune?key=refund:"+id, nil, nil)
	}
	w.execute(t, `UPDATE idempotency_keys SET claimed_at = claimed_at - interval '2 days' WHERE status = 'in_progress' AND operation LIKE '%/refunds'`)
	w.execute(t, `UPDATE refunds SET sent_at = sent_at - interval '2 days' WHERE status = 'pending'`)
}

// lapseIdle moves what nobody is at work on.
func (w *world) lapseIdle(t testing.TB) {
	w.execute(t, `UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '2 days' WHERE status = 'in_progress' AND lease_until < clock_timestamp() + interval '2 s'`)
	for _, table := range []string{"payments", "refunds", "orders"} {
		w.execute(t, `UPDATE `+table+` SET ask_at = clock_timestamp() - interval '1 s' WHERE ask_at > clock_timestamp()`)
	}
}

// forgetAged forgets what was answered under keys that may have been reaped.
func (w *world) forgetAged() {
	w.deployment.mu.Lock()
	defer w.deployment.mu.Unlock()
	for s := range w.seen {
		if w.aged[s.key] {
			delete(w.seen, s)
		}
	}
}

// forgetAndAskAgain reaps every key, lets Stripe forget its own, and sends
// everything once more. An order that was never paid may be paid by it; the
// invariants, which are checked again when the deployment ends, say that nothing
// is charged twice.
func (w *world) forgetAndAskAgain(t testing.TB) {
	w.execute(t, `UPDATE idempotency_keys SET completed_at = completed_at - interval '4 days'`)
	w.deployment.mu.Lock()
	clear(w.seen)
	w.deployment.mu.Unlock()
	w.restart(t, 0)
	eventually(t, "the reaper has been", func() bool {
		return sql[int](t, w.deployment, `SELECT count(*) FROM idempotency_keys WHERE completed_at < clock_timestamp() - interval '3 days'`) == 0
	})
	w.stripe.call(t, http.MethodPost, "/_sim/prune", nil, nil)
	for _, b := range w.buyers {
		for _, a := range b.sent {
			b.customer.at(w.shop(0)).post(a.path, a.key, a.body)
		}
	}
	w.settle(t)
}
