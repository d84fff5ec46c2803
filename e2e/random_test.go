package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
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

// buyer is a customer and what it has in hand.
type buyer struct {
	*world
	*customer
	number int

	mu   sync.Mutex
	sent []attempt // every payment and refund that it has sent
}

// attempt is one keyed request.
type attempt struct {
	path, key string
	body      any
}

var (
	soldCourses = []string{"idempotency-end-to-end", "postgresql-under-concurrency", "stripe-in-production", "webhooks-are-a-different-ledger", "proof-by-exhaustion", "payments-platform-team"}
	methods     = []string{
		"pm_card_visa", "pm_card_mastercard", "pm_card_chargeDeclined", "pm_card_chargeDeclinedExpiredCard",
		"pm_card_authenticationRequired", "pm_card_authenticationRequired", "pm_sim_reply_lost", "pm_sim_reply_lost", "pm_sim_never_arrived",
		"pm_sim_rate_limited", "pm_sim_server_error", "pm_sim_processing", "pm_sim_slow", "pm_sim_always_500",
	}
)

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

// letGo ends what the steps before have held up.
func (w *world) letGo() {
	for _, release := range w.held {
		release()
	}
	w.held = nil
}

// restart is a power cut.
func (w *world) restart(t testing.TB, i int) {
	old := w.shop(i)
	old.kill(t)
	opened := w.reopen(t, old)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now[i] = opened
}

// act is one thing that a buyer does.
func (b *buyer) act(r *rand.Rand) {
	shop, other := b.world.shop(r.IntN(2)), b.world.shop(r.IntN(2))
	course := soldCourses[r.IntN(len(soldCourses))]
	method, wish := methods[r.IntN(len(methods))], r.IntN(10)
	copies, patient := 1+r.IntN(3), r.IntN(4) > 0
	hangUpAfter := time.Duration(r.IntN(400)) * time.Millisecond

	c := b.customer.at(shop)
	placed := c.post("/orders", newKey(), orderBody(course))
	o, known := b.live(c, placed)
	if !known {
		return
	}
	switch {
	case o.Status == "paid" && wish < 4 && len(o.Payments) > 0:
		amount := o.Amount
		if wish == 0 {
			amount = 1 + r.Int64N(o.Amount)
		}
		b.send(c, other, attempt{refundsOf(succeeded(o)), newKey(), refundBody(amount)}, copies, hangUpAfter, patient)
	case o.Status != "open":
		b.again(r, shop)
	case wish == 0: // a key of its own, as from another tab
		b.send(c, other, attempt{paymentsOf(o), newKey(), paymentBody(method)}, copies, hangUpAfter, patient)
	case wish == 1: // a buyer who waits for the bank, and wants another card
		for _, p := range o.Payments {
			c.raw(http.MethodPost, "/payments/"+p.ID+"/cancel", "", "Accept", "application/json")
		}
	case wish == 2:
		b.again(r, shop)
	default:
		b.send(c, other, attempt{paymentsOf(o), o.PaymentKey, paymentBody(method)}, copies, hangUpAfter, patient)
		b.throughTheBank(c, o, r.IntN(4))
	}
}

// live reads the order that stands for a course, new or not.
func (b *buyer) live(c *customer, placed answer) (o order, known bool) {
	var said struct{ ID, Order string }
	if placed.err != nil || json.Unmarshal([]byte(placed.body), &said) != nil {
		return o, false
	}
	id := said.ID
	if id == "" {
		id = said.Order
	}
	read := c.get("/orders/" + id)
	return o, id != "" && read.err == nil && read.status == http.StatusOK && json.Unmarshal([]byte(read.body), &o) == nil
}

func succeeded(o order) (p payment) {
	for _, p = range o.Payments {
		if p.Status == "succeeded" {
			return p
		}
	}
	return p
}

// send sends a request several times at once to two shops, hangs up on one, and
// may go on until it knows.
func (b *buyer) send(c *customer, other *shop, a attempt, copies int, hangUpAfter time.Duration, patient bool) {
	b.mu.Lock()
	b.sent = append(b.sent, a)
	b.mu.Unlock()
	atOnce(copies, func(i int) answer {
		switch i {
		case 0:
			return c.post(a.path, a.key, a.body)
		case 1:
			ctx, cancel := context.WithTimeout(context.Background(), hangUpAfter)
			defer cancel()
			return c.send(c.keyed(a.path, a.key, a.body).WithContext(ctx))
		}
		return c.at(other).post(a.path, a.key, a.body)
	})
	for try := 0; patient && try < 3; try++ {
		got := c.at(other).post(a.path, a.key, a.body)
		if definitive(got) {
			return
		}
	}
}

// again sends something that was sent before, some time ago.
func (b *buyer) again(r *rand.Rand, at *shop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sent) == 0 {
		return
	}
	a := b.sent[r.IntN(len(b.sent))]
	b.customer.at(at).post(a.path, a.key, a.body)
}

// throughTheBank answers the bank, if it asks: yes, no, or not at all; and comes
// back from there or does not.
func (b *buyer) throughTheBank(c *customer, o order, wish int) {
	read, known := b.live(c, c.get("/orders/"+o.ID))
	if !known || wish == 0 {
		return
	}
	for _, p := range read.Payments {
		if p.Status != "requires_action" || p.PaymentIntent == "" {
			continue
		}
		outcome := stripesim.Succeeded
		if wish == 1 {
			outcome = stripesim.Failed
		}
		if finished, err := plainClient.Post("http://"+b.stripe.addr+"/_sim/payment_intents/"+p.PaymentIntent+"/finish?outcome="+string(outcome), "", nil); err == nil {
			_ = finished.Body.Close()
		}
		if wish != 2 {
			c.get("/orders/" + o.ID + "/return")
		}
	}
}

func (w *world) shop(i int) *shop {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now[i]
}

// breakSomething makes one thing go wrong.
func (w *world) breakSomething(t testing.TB, r *rand.Rand) {
	w.letGo()
	switch r.IntN(12) {
	case 0, 1:
		w.restart(t, r.IntN(2))
	case 2, 3, 4, 5:
		w.breakTheLine(t, r)
	case 6, 7, 8:
		w.breakTheEvents(t, r)
	case 9:
		w.lapse(t)
	case 10: // an order's time is over
		w.execute(t, `UPDATE orders SET expires_at = clock_timestamp() WHERE (account, id) IN (
			SELECT account, id FROM orders WHERE status = 'open' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)`)
	case 11:
		w.age(t)
	}
}

// breakTheLine puts a rule in force at Stripe.
func (w *world) breakTheLine(t testing.TB, r *rand.Rand) {
	paths := []string{confirmPath, confirmPath, "/v1/payment_intents", "/v1/payment_intents/*/cancel", "/v1/payment_intents/*", refundPath, refundPath}
	points := []stripesim.Point{stripesim.Arrival, stripesim.Execution, stripesim.Answer}
	failures := []stripesim.Failure{
		{Status: 429, Code: "rate_limit"},
		{Status: 500, Stored: true},
		{Status: 500, Stored: true, Executed: true},
		{Status: 500},
		{Status: 502, Body: "<html>"},
		{Status: 502, Body: "<html>", Executed: true},
		{Status: 401},
		{Status: 400},
	}
	rule := stripesim.Rule{Path: paths[r.IntN(len(paths))], At: points[r.IntN(3)], Times: 1 + r.IntN(2)}
	switch r.IntN(4) {
	case 0:
		rule.Action = stripesim.Drop
	case 1:
		rule.Action, rule.DelayMS = stripesim.Delay, 1+r.Int64N(2500)
	case 2:
		rule.Action, rule.At, rule.Failure = stripesim.Fail, "", &failures[r.IntN(len(failures))]
	case 3:
		rule.Action = stripesim.Hold
		held, drops := w.stripe.add(t, rule), r.IntN(2) == 0
		w.held = append(w.held, func() {
			if drops {
				held.drop(t)
			} else {
				held.release(t)
			}
		})
		return
	}
	w.stripe.add(t, rule)
}

// breakTheEvents puts a rule in force for deliveries.
func (w *world) breakTheEvents(t testing.TB, r *rand.Rand) {
	rule := stripesim.DeliveryRule{Times: 1 + r.IntN(4)}
	switch r.IntN(6) {
	case 0:
		rule.Drop = true
	case 1:
		rule.Copies = 1 + r.IntN(3)
	case 2:
		rule.DelayMS, rule.JitterMS = r.Int64N(500), 1000
	case 3:
		rule.BeforeAnswer = true
	case 4:
		rule.Tamper = stripesim.TamperBody
	case 5:
		rule.Hold = true
	}
	added := w.stripe.addDelivery(t, rule)
	if rule.Hold {
		w.held = append(w.held, func() { added.release(t) })
	}
}

// lapse moves every lease to its end, also those of owners that are at work, and
// every schedule to its next try.
func (w *world) lapse(t testing.TB) {
	w.execute(t, `UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '2 days'
		WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE status = 'in_progress' FOR UPDATE SKIP LOCKED)`)
	for _, table := range []string{"payments", "refunds", "orders"} {
		w.execute(t, `UPDATE `+table+` SET ask_at = clock_timestamp() - interval '1 s'
			WHERE ctid IN (SELECT ctid FROM `+table+` WHERE ask_at > clock_timestamp() FOR UPDATE SKIP LOCKED)`)
	}
}

// age makes finished keys so old that the reaper takes them; it runs when a shop
// is opened. What was answered under them is no longer to be found.
func (w *world) age(t testing.TB) {
	var keys []string
	w.withDatabase(t, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, _ := pool.Query(ctx, `UPDATE idempotency_keys SET completed_at = completed_at - interval '4 days'
			WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE completed_at > clock_timestamp() - interval '1 day' ORDER BY completed_at LIMIT 3 FOR UPDATE SKIP LOCKED)
			RETURNING key`)
		var err error
		keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		w.aged[key] = true
	}
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
