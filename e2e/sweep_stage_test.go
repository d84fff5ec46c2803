package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// errNotKnownYet: the page said that the payment is not known yet.
var errNotKnownYet = errors.New("not known yet")

// stage is what one flow is swept on: a database and a Stripe, and a shop that
// reaches both through proxies that share a line.
type stage struct {
	*deployment
	flow    flow
	line    *line
	sim     *stripesim.Server
	mailbox *mailbox
	through settings // for a shop behind the proxies
	direct  settings // for one beside them
	shop    *shop    // behind the proxies
	other   *shop    // beside them; nil until it is needed

	// cold is true if the shop's connections are new: the statements of a flow
	// are prepared on them when it runs for the first time.
	cold  bool
	clean trace
	gone  []*trial // whose clients did not come back
}

// leases are long, so that none lapses but by the test's hand: it moves them
// back where it would have to wait. Two connections are the fewest that a shop
// can have, and are open from the start.
var sweptSettings = settings{"LEASE=40s", "PROVIDER_TIMEOUT=30s", "WAIT=20ms", "DB_MAX_CONNS=2"}

func newStage(t *testing.T, f flow) *stage {
	t.Helper()
	sim, err := stripesim.New(stripesim.Config{DeliverAfter: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	s := &stage{flow: f, line: &line{}, sim: sim, cold: true}
	direct, proxied := httptest.NewServer(sim), httptest.NewServer(proxyStripe(s.line, sim))
	t.Cleanup(direct.Close)
	t.Cleanup(proxied.Close)

	database := newDatabase(t)
	pool, err := pgxpool.New(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s.deployment = &deployment{t: t, dataDir: newFolder(t), pool: pool, stripe: &stripe{addr: direct.Listener.Addr().String()}, seen: map[sighting]bool{}}
	s.mailbox = newMailbox(t, s.stripe)
	s.settings = append(slices.Clone(sweptSettings), "DATA_DIR="+s.dataDir, "SESSION_SECRET="+sessionSecret,
		"STRIPE_SECRET_KEY=sk_test_local", "STRIPE_WEBHOOK_SECRET="+s.mailbox.secret, "DEMO=on", clientsOnly)
	s.through = settings{"DATABASE_URL=" + proxyPostgres(t, s.line, database), "STRIPE_API_BASE=" + proxied.URL}
	s.direct = settings{"DATABASE_URL=" + database, "STRIPE_API_BASE=" + direct.URL}
	t.Cleanup(s.close)

	s.shop = s.open(t, s.through...)
	return s
}

// close ends the shops. Their invariants were checked by finish.
func (s *stage) close() {
	for _, opened := range s.shops {
		if s.t.Failed() {
			opened.report(s.t)
		}
		if opened.running() {
			opened.kill(s.t)
		}
	}
}

// newTrial prepares an operation, undisturbed.
func (s *stage) newTrial(t testing.TB) *trial {
	tr := &trial{c: s.customer(t, s.shop)}
	tr.c.t = t
	s.flow.prepare(s, tr)
	return tr
}

// warm runs the flow once, so that what a shop does once is done.
func (s *stage) warm(t testing.TB) {
	tr := s.newTrial(t)
	s.finish(t, tr, s.flow.operate(s, tr, s.shop))
	s.cold = false
}

// count numbers the messages of the operation. Two clean runs in a row must send
// the same ones: else a boundary would mean nothing.
func (s *stage) count(t testing.TB) {
	var before trace
	for range 20 {
		if s.cold {
			s.warm(t)
		}
		tr := s.newTrial(t)
		s.line.begin(nil, nil)
		a := s.flow.operate(s, tr, s.shop)
		seen, _ := s.line.end()
		s.finish(t, tr, a)
		if slices.EqualFunc(seen[:], before[:], slices.Equal[[]string]) {
			s.clean = seen
			require.NotEmpty(t, seen[toPostgres])
			return
		}
		before = seen
	}
	require.Fail(t, "no two clean runs in a row send the same messages", "%s", s.flow.name)
}

// manner is what happens at a boundary, and whether the client comes back.
type manner struct {
	name string
	fate fate
	gone bool
}

var manners = []manner{
	{"KilledBefore", killedBefore, false},
	{"KilledAfter", killedAfter, false},
	{"KilledAndClientGone", killedBefore, true},
	{"Cut", cut, false},
	{"CutAndClientGone", cut, true},
	{"DelayedPastTheLease", delayed, false},
}

// try strikes at one boundary and follows the operation to its end. It returns
// how it ended, or nothing if that is up to the completer.
func (s *stage) try(t testing.TB, b boundary, m manner) string {
	for range 20 {
		if s.cold {
			s.warm(t)
		}
		tr := s.newTrial(t)
		first, struck := s.strike(t, tr, b, m)
		if struck && m.gone {
			requireHonest(t, first)
			s.gone = append(s.gone, tr)
			return ""
		}
		ended := s.finish(t, tr, first)
		if struck {
			return ended
		}
		s.cold = true // something else was on the line; again
	}
	require.Fail(t, "the boundary is never reached", "%s", s.clean.describe(b))
	return ""
}

// strike runs the operation and lets it meet its fate at the boundary. It
// returns what the client was answered, and false if the boundary was not
// reached as it should be.
func (s *stage) strike(t testing.TB, tr *trial, b boundary, m manner) (first answer, struck bool) {
	victim := s.shop
	st := &strike{
		boundary: b, fate: m.fate, clean: s.clean,
		struck: make(chan struct{}), release: make(chan struct{}),
		kill: func() { _ = victim.cmd.Process.Kill(); <-victim.ended },
	}
	early := func() {}
	if m.fate == delayed {
		if s.other == nil {
			s.other = s.open(t, s.direct...)
		}
		early = func() { s.lapse(t, tr.key) }
	}
	s.line.begin(st, early)
	running := later(func() answer { return s.flow.operate(s, tr, victim) })
	if m.fate == delayed {
		select {
		case <-st.struck:
			s.overtake(t, tr)
		case first = <-running:
		}
		close(st.release)
	}
	if first.err == nil && first.status == 0 {
		first = <-running
	}
	_, struck = s.line.end()
	switch {
	case !struck:
	case m.fate == killedBefore || m.fate == killedAfter:
		<-victim.ended
		s.cold = true
		s.shops = slices.DeleteFunc(s.shops, func(old *shop) bool { return old == victim })
		s.shop = s.reopen(t, victim, s.through...)
	case m.fate == cut:
		s.cold = true
	}
	return first, struck
}

// overtake lets another shop have the same operation while the first one is
// held up past its lease. It returns when the other is done, or waits for a lock
// that the first one has.
func (s *stage) overtake(t testing.TB, tr *trial) {
	s.lapse(t, tr.key)
	second := later(func() answer { return s.flow.operate(s, tr, s.other) })
	eventually(t, "the other shop has an answer, or waits for the first one's transaction", func() bool {
		return len(second) > 0 || sql[int](t, s.deployment, `
			SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	tr.second = second
}

// lapse moves a key's lease back past its end. A key that is locked keeps its
// lease: nobody could take it over anyway.
func (s *stage) lapse(t testing.TB, key string) {
	s.execute(t, `
		UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 ms'
		 WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE key = $1 AND status = 'in_progress' FOR UPDATE SKIP LOCKED)`, key)
}

// finish is the client that got an answer, or none, and sends the same again
// until it knows. Then everything must be as it should. It returns how the
// operation ended.
func (s *stage) finish(t testing.TB, tr *trial, first answer) string {
	last, how, alone := first, "at once", tr.second == nil
	requireHonest(t, first)
	if !alone {
		second := <-tr.second
		requireHonest(t, second)
		tr.second = nil
		how = fmt.Sprintf("and the other shop %d %s", second.status, codeOf(second))
		if second.replayed() {
			how += " (replay)"
		}
	}
	if !definitive(first) {
		eventually(t, "a definitive answer", func() bool {
			s.lapse(t, tr.key)
			last = s.flow.operate(s, tr, s.shop)
			requireHonest(t, last)
			return definitive(last)
		})
		attempts := sql[int](t, s.deployment, `SELECT coalesce(max(attempt), 0) FROM idempotency_keys WHERE key = $1`, tr.key)
		switch {
		case !alone:
		case last.replayed():
			how = "found done"
		case attempts > 1:
			how = "taken over"
		default:
			how = "sent again"
		}
	}
	s.flow.ends(t, s, tr, last)
	s.requireEnded(t, tr)
	return fmt.Sprintf("%d %s, %s", last.status, codeOf(last), how)
}

// requireHonest requires that an answer is one that an operation may give while
// things break: its own, or that nothing is known yet. Anything else, such as
// "not found", would send its client away from money that may have moved.
func requireHonest(t testing.TB, a answer) {
	t.Helper()
	if a.err != nil {
		return
	}
	honest := []string{
		"200", "201", "202", "402", "500 internal", "409 request_in_progress", "409 claim_contended", "409 running",
		"503 outcome_unknown", "503 provider_busy", "503 overloaded", "503 not_yet",
	}
	status := strconv.Itoa(a.status)
	require.True(t, slices.Contains(honest, status) || slices.Contains(honest, status+" "+codeOf(a)), "%s %s", status, a.body)
}

// definitive is true for an answer after which a client has nothing to send
// again.
func definitive(a answer) bool {
	if a.err != nil || a.status >= http.StatusInternalServerError || a.retryAfter() > 0 {
		return false
	}
	// A delivery that runs elsewhere comes again, as Stripe does it.
	return a.status != http.StatusConflict || codeOf(a) != "running"
}

// codeOf is what an answer says in a word.
func codeOf(a answer) string {
	var said struct{ Code, Result, Status any }
	_ = json.Unmarshal([]byte(a.body), &said) // a page says nothing
	for _, word := range []any{said.Code, said.Result, said.Status} {
		if word, is := word.(string); is {
			return word
		}
	}
	return ""
}

// requireEnded requires what must be true of one order when its operation has
// ended, whatever happened on the way.
func (s *stage) requireEnded(t testing.TB, tr *trial) {
	t.Helper()
	require.Equal(t, s.flow.final, sql[string](t, s.deployment, `SELECT status FROM orders WHERE id = $1`, tr.o.ID))
	require.Len(t, s.newestCharges(t, tr.o), 1, "charges for the order")
	for what, query := range map[string]string{
		"payments that have no end": `SELECT count(*) FROM payments WHERE order_id = $1 AND status IN ('pending', 'requires_action', 'processing')`,
		"keys that have no end":     `SELECT count(*) FROM idempotency_keys k JOIN payments p ON p.account = k.scope WHERE p.order_id = $1 AND k.status <> 'completed'`,
		"refunds that have no end":  `SELECT count(*) FROM refunds WHERE order_id = $1 AND status = 'pending'`,
	} {
		require.Zero(t, sql[int](t, s.deployment, query, tr.o.ID), what)
	}
}

// newestCharges are the charges of an order whose operation ran a moment ago.
func (s *stage) newestCharges(t testing.TB, o order) (of []charge) {
	t.Helper()
	var page struct {
		Data []charge `json:"data"`
	}
	s.stripe.call(t, http.MethodGet, "/v1/charges?limit=20", nil, &page)
	for _, c := range page.Data {
		if c.Metadata.Order == o.ID && c.Status == "succeeded" {
			of = append(of, c)
		}
	}
	return of
}

// refunds counts what Stripe gave back of a charge.
func (s *stage) refunds(t testing.TB, c charge) int {
	t.Helper()
	var page struct {
		Data []struct{} `json:"data"`
	}
	s.stripe.call(t, http.MethodGet, "/v1/refunds?"+url.Values{"charge": {c.ID}}.Encode(), nil, &page)
	return len(page.Data)
}

// complete lets the completer end what clients have left, and returns how each
// of their operations ended.
func (s *stage) complete(t testing.TB) (ends []string) {
	completer := s.open(t, append(slices.Clone(s.direct), "COMPLETER_INTERVAL=100ms")...)
	eventually(t, "the completer has ended what was left", func() bool {
		// Its schedules begin after seconds, and after minutes for the bank.
		s.execute(t, `UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '2 days' WHERE status = 'in_progress' AND lease_until < clock_timestamp() + interval '39 s'`)
		s.execute(t, `UPDATE payments SET ask_at = clock_timestamp() WHERE status IN ('requires_action', 'processing') AND ask_at > clock_timestamp()`)
		s.execute(t, `UPDATE refunds SET ask_at = clock_timestamp() WHERE status = 'pending' AND ask_at > clock_timestamp()`)
		return sql[int](t, s.deployment, `
			SELECT (SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress')
			     + (SELECT count(*) FROM payments WHERE status IN ('pending', 'requires_action', 'processing'))
			     + (SELECT count(*) FROM refunds WHERE status = 'pending')`) == 0
	})
	completer.close(t)
	for _, tr := range s.gone {
		ends = append(ends, sql[string](t, s.deployment, `
			SELECT 'key ' || coalesce((SELECT status || coalesce(' ' || response_status, '') FROM idempotency_keys WHERE key = $2), 'never claimed')
			    || ', order ' || status FROM orders WHERE id = $1`, tr.o.ID, tr.key))
	}
	return ends
}

// deliverAll delivers every event that Stripe has sent, late and once more: it
// must change nothing that is right.
func (s *stage) deliverAll(t testing.TB) {
	for _, e := range s.mailbox.all() {
		eventually(t, "event "+e.id+" is taken", func() bool {
			a := s.mailbox.deliver(s.shop, e)
			return a.err == nil && a.status == http.StatusOK
		})
	}
}
