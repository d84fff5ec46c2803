package e2e

import (
	"errors"
	"net/http/httptest"
	"slices"
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
	// completer is true if a message is delayed until the completer, and no other
	// client, has come past it.
	completer bool
}

var manners = []manner{
	{name: "KilledBefore", fate: killedBefore},
	{name: "KilledAfter", fate: killedAfter},
	{name: "KilledAndClientGone", fate: killedBefore, gone: true},
	{name: "Cut", fate: cut},
	{name: "CutAndClientGone", fate: cut, gone: true},
	{name: "DelayedPastTheLease", fate: delayed},
	{name: "DelayedPastTheCompleter", fate: delayed, completer: true},
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
			interval := settings{clientsOnly}
			if m.completer {
				interval = settings{"COMPLETER_INTERVAL=100ms"}
			}
			s.other = s.open(t, slices.Concat(s.direct, interval)...)
		}
		if !m.completer { // it would come at once
			early = func() { s.lapse(t, tr.key) }
		}
	}
	s.line.begin(st, early)
	running := later(func() answer { return s.flow.operate(s, tr, victim) })
	if m.fate == delayed {
		select {
		case <-st.struck:
			if m.completer {
				s.completeBeside(t, tr)
			} else {
				s.overtake(t, tr)
			}
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

// completeBeside leaves the key to the completer of another shop, while the
// operation is held up. It returns when the completer has begun, or waits for a
// lock that the operation has, or cannot find the key, which is not there yet or
// is locked.
func (s *stage) completeBeside(t testing.TB, tr *trial) {
	s.execute(t, `
		UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '2 days'
		 WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE key = $1 AND status = 'in_progress' FOR UPDATE SKIP LOCKED)`, tr.key)
	eventually(t, "the completer has come, or waits", func() bool {
		return sql[bool](t, s.deployment, `
			SELECT NOT EXISTS (SELECT FROM idempotency_keys WHERE key = $1 AND status = 'in_progress' AND completer_tries = 0
			                      AND lease_until < clock_timestamp() - interval '1 day')
			    OR EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`, tr.key)
	})
}

// lapse moves a key's lease back past its end. A key that is locked keeps its
// lease: nobody could take it over anyway.
func (s *stage) lapse(t testing.TB, key string) {
	s.execute(t, `
		UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 ms'
		 WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE key = $1 AND status = 'in_progress' FOR UPDATE SKIP LOCKED)`, key)
}
