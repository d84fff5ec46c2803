package e2e

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// errNobodyAsked: the operation was the shop's own, and nobody waits for it.
var errNobodyAsked = errors.New("nobody asked")

// abandoned is what the completer is for: a payment that was charged, and
// neither the shop nor its client has the answer. The operation is the client's,
// who comes back in the end, or does not.
var abandoned = flow{
	name: "Completer", prepare: prepareUnknown, operate: payWith("pm_card_visa"), final: "paid",
	ends: func(t testing.TB, _ *stage, tr *trial, a answer) { tr.c.paid(a) },
}

// What a run of the completer says to PostgreSQL when it has found an abandoned
// key, and when it goes on to something else.
const (
	completerBegins = "SELECT operation, request_hash, status,"
	completerGoesOn = "UPDATE payments p SET"
)

// sweepCompleter kills the shop at each message of a run of its completer. What
// it leaves is ended by the client who comes back, or by another completer.
func sweepCompleter(t *testing.T, whole bool, mine func(number int) bool, report *sweepReport) {
	for turn, m := range []manner{{name: "KilledBefore", fate: killedBefore}, {name: "KilledAndClientGone", fate: killedBefore, gone: true}} {
		t.Run(abandoned.name+"/"+m.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, abandoned)
			// Clients stay off the line.
			s.shop.kill(t)
			s.shops = nil
			s.shop = s.open(t, s.direct...)
			s.countCompleter(t)
			at := "the clean runs"
			defer func() {
				if t.Failed() {
					t.Logf("%s, %s: %s", abandoned.name, m.name, at)
				}
			}()
			for number, b := range s.clean.boundaries() {
				// The quick form takes turns: one in two is for the client to end.
				if !mine(number) || !whole && (!s.clean.matters(b) || number%2 != turn) {
					continue
				}
				at = s.clean.describe(b)
				if ended := s.tryCompleter(t, b, m); ended != "" {
					report.add(abandoned, m, ended)
				}
			}
			at = "the end"
			for _, ended := range s.complete(t) {
				report.add(abandoned, m, ended)
			}
			requireInvariants(t, s.deployment)
			s.deliverAll(t)
			requireInvariants(t, s.deployment)
		})
	}
}

// runCompleter starts a shop behind the proxies and lets its completer find one
// abandoned payment. It returns when the shop was killed, or the run is over and
// the shop is closed.
func (s *stage) runCompleter(t testing.TB, tr *trial, st *strike) (seen trace, struck bool) {
	victim := s.open(t, append(slices.Clone(s.through), "COMPLETER_INTERVAL=100ms")...)
	defer func() { s.shops = slices.DeleteFunc(s.shops, func(old *shop) bool { return old == victim }) }()
	if st != nil {
		st.kill = func() { _ = victim.cmd.Process.Kill(); <-victim.ended }
	}
	s.line.beginWithin(st, completerBegins, completerGoesOn)
	s.execute(t, `UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '2 days' WHERE key = $1 AND status = 'in_progress'`, tr.key)
	eventually(t, "the completer has run, or was killed", func() bool { return s.line.over() || !victim.running() })
	seen, struck = s.line.end()
	if struck {
		<-victim.ended
	} else {
		victim.kill(t)
	}
	return seen, struck
}

// countCompleter numbers the messages of a run. Each run is a new shop's first.
func (s *stage) countCompleter(t testing.TB) {
	var before trace
	for range 20 {
		tr := s.newTrial(t)
		seen, _ := s.runCompleter(t, tr, nil)
		s.finish(t, tr, answer{err: errNobodyAsked})
		if slices.EqualFunc(seen[:], before[:], slices.Equal[[]string]) {
			s.clean = seen
			require.NotEmpty(t, seen[toStripe], "it asks")
			return
		}
		before = seen
	}
	require.Fail(t, "no two clean runs in a row send the same messages", "%s", s.flow.name)
}

// tryCompleter kills the shop at one boundary. It returns how the payment ended,
// or nothing if that is up to the next completer.
func (s *stage) tryCompleter(t testing.TB, b boundary, m manner) string {
	for range 20 {
		tr := s.newTrial(t)
		_, struck := s.runCompleter(t, tr, &strike{
			boundary: b, fate: m.fate, clean: s.clean, struck: make(chan struct{}), release: make(chan struct{}),
		})
		if struck && m.gone {
			s.gone = append(s.gone, tr)
			return ""
		}
		ended := s.finish(t, tr, answer{err: errNobodyAsked})
		if struck {
			return ended
		}
	}
	require.Fail(t, "the boundary is never reached", "%s", s.clean.describe(b))
	return ""
}
