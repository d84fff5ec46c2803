package view_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/web/view"
)

// ledger is an account's keys in every state.
func ledger() view.Ledger {
	over, eight := killed(), copies(8)
	over.LedgerURL, eight.LedgerURL = "", ""
	facts := []view.Fact{
		{Label: "Scope", Value: "acct_5T2…Q7K2M", Machine: true},
		{Label: "Fingerprint", Value: "sha256 9c41…e07b", Machine: true},
		{Label: "Recovery point", Value: "intent_created", Machine: true},
		{Label: "Downstream key", Value: "pay:<payment>:<generation>", Machine: true},
		{Label: "Removed after", Value: "72 hours"},
	}
	history := []view.KeyEntry{
		{Clock: "10:42:07.123", Stamp: "2026-11-14T10:42:07.123Z", What: "claimed", Attempt: "1", Owner: "7f3a", Instance: "shop:8080/1", Detail: "waited 0.4 ms, lease 60 s"},
		{Clock: "10:42:07.311", Stamp: "2026-11-14T10:42:07.311Z", What: "completed", Attempt: "1", Owner: "7f3a", Instance: "shop:8080/1", Detail: "201, 214 bytes"},
		{What: "replayed", Detail: "and 5 more"},
	}
	key := func(id, name, state, answer string) view.LedgerKey {
		return view.LedgerKey{
			ID: id, Key: name, Operation: "POST /orders/ord_7K2M…A4T0/payments", State: state, Attempt: "1", Instance: "shop:8080/1",
			Answer: answer, Replays: "0", Age: 14, Facts: facts, History: history,
		}
	}
	charged := key("key-1", "01JDZ8M4…R0HBE", "completed", "201")
	charged.Charged, charged.Replays, charged.Happened = true, "7", &eight
	declined := key("key-2", "01JDZ8F6…K8T5V", "completed", "402")
	declined.Code, declined.Age = "insufficient_funds", 190
	placed := key("key-3", "ord-ide…95855", "completed", "201")
	placed.Operation = "POST /orders"
	free := placed
	free.ID = "key-10"
	taken := key("key-4", "01JDZ8HA…W3N0C", "completed", "201")
	taken.Attempt, taken.Took, taken.Charged, taken.Happened, taken.Replays = "2", "took over from 7f3a", true, &over, "64+"
	working := key("key-5", "01JDZ8K1…7QX2M", "in_progress", "")
	working.Lease = &view.KeyLease{Left: 40.6, Total: 60}
	lapsed := key("key-6", "01JDZ85E…M2D7R", "in_progress", "")
	lapsed.Lease, lapsed.Age = &view.KeyLease{Left: -9.2, Total: 60}, 8000
	released := key("key-7", "01JDZ8D2…B1Y9P", "failed_retryable", "")
	parked := key("key-8", "01JDZ7XN…C6G3K", "parked", "")
	parked.Age = 90000
	reaped := key("key-9", "01JDZ85F…M2D7R", "completed", "201")
	reaped.Operation, reaped.Age = "POST /payments/pay_877a…9k2m/refunds", 200000
	return view.Ledger{
		Frame: frame(view.LedgerSection), Clock: "10:42:07 UTC", Stamp: "2026-11-14T10:42:07Z", Mark: "4f1c09d2",
		Content: view.LedgerContent{
			Tally: view.LedgerTally{Keys: 9, Completed: 5, InProgress: 2, Retryable: 1, NeedPerson: 1, Replays: 71, MoreReplays: true},
			Groups: []view.KeyGroup{
				{Title: "Idempotency, end to end", URL: "/orders/ord_1", Order: "ord_1", Amount: "$49.00", Charged: view.ChargedOnce, Words: "Charged once", Keys: []view.LedgerKey{charged, declined, placed}},
				{Title: "Stripe in production", URL: "/orders/ord_2", Order: "ord_2", Amount: "$75.00", Charged: view.ChargedOnce, Words: "Charged once", Keys: []view.LedgerKey{taken}},
				{Title: "PostgreSQL under concurrency", URL: "/orders/ord_3", Order: "ord_3", Amount: "¥7,900", Charged: view.NotKnownYet, Words: "Not known yet", Keys: []view.LedgerKey{working, lapsed, released, parked}},
				{Title: "Why a SELECT cannot answer", URL: "/orders/ord_4", Order: "ord_4", Amount: "Free", Keys: []view.LedgerKey{free}},
				{Keys: []view.LedgerKey{reaped}},
			},
			More: true,
		},
	}
}

// ledgerStories are the pages that show keys, in every state.
func ledgerStories() []story {
	all := []story{
		{"ledger", view.LedgerPage(ledger())},
		{"ledger-empty", view.LedgerPage(view.Ledger{Frame: frame(view.LedgerSection), Clock: "10:42:07 UTC", Stamp: "2026-11-14T10:42:07Z"})},
	}
	for name, m := range lives() {
		paid := receipt(view.Paid)
		paid.Happened = &m
		all = append(all, story{"happened-" + name, view.ReceiptPage(paid)})
	}
	return all
}

func TestTheLedgerShowsTheKeysOfAnOrderTogether(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.LedgerPage(ledger())))
	table := only(t, elements(root, withClass("ledger-table")))
	var groups []string
	for _, group := range elements(table, withClass("group")) {
		groups = append(groups, text(group))
	}
	require.Equal(t, []string{
		"Charged once Idempotency, end to end $49.00 Three keys", "Charged once Stripe in production $75.00 One key",
		"Not known yet PostgreSQL under concurrency ¥7,900 Four keys", "Why a SELECT cannot answer Free One key", "No order is known One key",
	}, groups)

	rows := map[string]string{}
	for _, row := range elements(table, withClass("entry")) {
		rows[attr(only(t, elements(row, named("details"))), "id")] = text(row)
	}
	require.Equal(t, "01JDZ8M4…R0HBE POST /orders/ord_7K2M…A4T0/payments completed 1 none 201 charged 7 14 s", rows["key-1"])
	require.Equal(t, "01JDZ8F6…K8T5V POST /orders/ord_7K2M…A4T0/payments completed 1 none 402 insufficient_funds 0 3 min", rows["key-2"])
	require.Equal(t, "01JDZ8HA…W3N0C POST /orders/ord_7K2M…A4T0/payments completed 2 took over from 7f3a none 201 charged 64+ 14 s", rows["key-4"])
	require.Equal(t, "01JDZ8K1…7QX2M POST /orders/ord_7K2M…A4T0/payments in_progress 1 41 s left none stored 0 14 s", rows["key-5"])
	require.Equal(t, "01JDZ85E…M2D7R POST /orders/ord_7K2M…A4T0/payments in_progress 1 lapsed 9 s ago none stored 0 2 h", rows["key-6"])
	require.Equal(t, "01JDZ8D2…B1Y9P POST /orders/ord_7K2M…A4T0/payments failed_retryable 1 none none stored 0 14 s", rows["key-7"])
	require.Equal(t, "01JDZ7XN…C6G3K POST /orders/ord_7K2M…A4T0/payments needs a person 1 none none stored 0 1 day", rows["key-8"])

	var figures []string
	for _, item := range elements(only(t, elements(root, withClass("tally"))), named("div")) {
		figures = append(figures, text(item))
	}
	require.Equal(t, []string{"keys 9", "completed 5", "in progress 2", "retryable 1", "need a person 1", "replays served 71+", "charged twice 0"}, figures)
}

func TestALeaseRunsDownAsABarAndInWords(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.LedgerPage(ledger())))
	leases := elements(root, func(n *html.Node) bool { _, has := lookup(n, "data-lease"); return has })
	require.Len(t, leases, 2)
	fill := func(n *html.Node) string { return attr(only(t, elements(n, withClass("lease-fill"))), "width") }
	require.Equal(t, []string{"40.6", "60.0", "32.5"}, []string{attr(leases[0], "data-lease"), attr(leases[0], "data-total"), fill(leases[0])})
	require.Equal(t, []string{"-9.2", "60.0", "0.0"}, []string{attr(leases[1], "data-lease"), attr(leases[1], "data-total"), fill(leases[1])})
}

// Each key of the page opens: its row is followed by its facts, its history and,
// where there is one, its drawing.
func TestEveryKeyOpens(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.LedgerPage(ledger())))
	closer := elements(root, withClass("closer"))
	require.Len(t, closer, len(elements(root, withClass("entry"))))
	require.Len(t, elements(root, withClass("lanes")), 2)
	for _, row := range closer {
		require.Contains(t, text(row), "Fingerprint sha256 9c41…e07b")
		history := only(t, elements(row, withClass("history")))
		require.Contains(t, text(history), "10:42:07.311 completed 1 7f3a shop:8080/1 201, 214 bytes")
		require.Contains(t, text(history), "and 5 more")
	}
	ids := map[string]bool{}
	for _, n := range elements(root, func(n *html.Node) bool { return strings.HasPrefix(attr(n, "id"), "happened") }) {
		require.False(t, ids[attr(n, "id")], "an id twice")
		ids[attr(n, "id")] = true
	}
}

func TestWhatWasChargedTwiceIsSeen(t *testing.T) {
	t.Parallel()
	m := ledger()
	m.Content.Tally.ChargedTwice = 1
	root := parse(t, renderPage(t, view.LedgerPage(m)))
	require.Equal(t, "1", text(only(t, elements(only(t, elements(root, withClass("tally"))), withClass("wrong")))))
}
