package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	if sql[bool](t, s.deployment, `SELECT EXISTS (SELECT FROM idempotency_keys WHERE key = $1 AND completer_tries > 0)`, tr.key) {
		how += ", past the completer"
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
