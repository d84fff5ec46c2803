package view_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/web/view"
)

func at(ms float64) *float64 { return &ms }

// paidOwner is an owner that saw a payment through.
func paidOwner() view.KeyOwner {
	return view.KeyOwner{
		Name: "7f3a", Instance: "shop:8080/1", Attempt: 1, Origin: view.ClaimedFresh,
		Arrived: at(0), Began: at(.4), Claimed: 1.5, Granted: at(3), Points: []view.KeyPoint{{Name: "intent_created", At: 74}},
		Lease: at(60001.5), End: view.EndRecorded, RecordBegan: at(188.4), Ended: 191.8, Status: 201, Charged: true,
	}
}

// copies is a payment that arrived n times at once.
func copies(n int) view.WhatHappened {
	m := view.WhatHappened{Noun: "payment", Owners: []view.KeyOwner{paidOwner()}, Bytes: 214, LedgerURL: "/ledger"}
	for i := 1; i < n; i++ {
		m.Replays = append(m.Replays, view.KeyReplay{Arrived: at(float64(i) * 3 / float64(max(n-1, 1))), At: 193 + float64(i)*.5})
	}
	return m
}

// killed is a payment whose first owner was killed in the call, and taken over by another process.
func killed() view.WhatHappened {
	first := view.KeyOwner{
		Name: "7f3a", Instance: "shop:8080/1", Attempt: 1, Origin: view.ClaimedFresh, Arrived: at(0), Began: at(.4), Claimed: 1.5,
		Granted: at(3), Points: []view.KeyPoint{{Name: "intent_created", At: 74}}, Lease: at(60001),
	}
	second := paidOwner()
	second.Name, second.Instance, second.Attempt, second.Origin = "c81e", "shop:8080/2", 2, view.ClaimedOver
	second.Arrived, second.Began, second.Claimed, second.Granted, second.Points = at(63000), at(63000.4), 63001, at(63003), nil
	second.Lease, second.RecordBegan, second.Ended = at(123001), at(63200), 63204
	return view.WhatHappened{Noun: "payment", Owners: []view.KeyOwner{first, second}, Replays: []view.KeyReplay{{Arrived: at(68000), At: 68001}}, Bytes: 214}
}

// lives are keys in every state that a page can show.
func lives() map[string]view.WhatHappened {
	declined := copies(1)
	declined.Owners[0].Status, declined.Owners[0].Charged = 402, false
	released := copies(1)
	released.Owners[0].End, released.Owners[0].Status, released.Owners[0].Charged, released.Bytes = view.EndReleased, 0, false, 0
	unknown := copies(1)
	unknown.Owners[0].End, unknown.Owners[0].Status, unknown.Owners[0].Charged, unknown.Bytes = view.EndUnknown, 0, false, 0
	unknown.Owners[0].Lease = at(2191)
	settled := unknown
	settled.Settled = &view.KeySettled{At: 900, Status: 201, Charged: true}
	working := copies(1)
	working.Owners[0].End, working.Owners[0].RecordBegan, working.Owners[0].Status, working.Owners[0].Charged = view.NoEnd, nil, 0, false
	retried := copies(1)
	again := paidOwner()
	again.Attempt, again.Origin, again.Arrived, again.Began, again.Claimed, again.Granted = 2, view.ClaimRetaken, at(3000), at(3000), 3001, at(3003)
	again.RecordBegan, again.Ended, again.Points = at(3100), 3104, nil
	retried.Owners = []view.KeyOwner{released.Owners[0], again}
	local := copies(2)
	local.Noun = "order"
	local.Owners[0] = view.KeyOwner{Name: "7f3a", Attempt: 1, Origin: view.ClaimedFresh, Arrived: at(0), Began: at(.3), Claimed: .9, End: view.EndRecorded, RecordBegan: at(.3), Ended: 2.4, Status: 201}
	local.Replays = []view.KeyReplay{{Arrived: at(.5), At: 3}}
	bare := copies(2)
	bare.Owners[0] = view.KeyOwner{Name: "7f3a", Attempt: 1, Origin: view.ClaimedFresh, Claimed: 0, End: view.EndRecorded, Ended: 100, Status: 201, Charged: true}
	bare.Replays = []view.KeyReplay{{At: 101}}
	many := copies(64)
	many.MoreReplays = true
	late := copies(2)
	late.Replays = append(late.Replays, view.KeyReplay{Arrived: at(600_000), At: 600_002})
	return map[string]view.WhatHappened{
		"one": copies(1), "eight": copies(8), "twenty": copies(20), "many": many, "late": late, "declined": declined, "released": released,
		"unknown": unknown, "settled": settled, "working": working, "retried": retried, "killed": killed(), "local": local, "bare": bare,
	}
}

func happened(t *testing.T, m view.WhatHappened) *html.Node {
	t.Helper()
	r := receipt(view.Paid)
	r.Happened = &m
	return parse(t, renderPage(t, view.ReceiptPage(r)))
}

func lanes(t *testing.T, root *html.Node) []*html.Node {
	t.Helper()
	return elements(only(t, elements(only(t, elements(root, withClass("lanes"))), named("tbody"))), named("tr"))
}

func marks(row *html.Node, name string) (places []string) {
	for _, n := range elements(row, named("use")) {
		if attr(n, "href") == "#"+name {
			places = append(places, attr(n, "x"))
		}
	}
	return places
}

func TestEightCopiesAreDrawnAsTheHistoryHasThem(t *testing.T) {
	t.Parallel()
	root := happened(t, copies(8))
	rows := lanes(t, root)
	require.Len(t, rows, 8)
	require.Equal(t, "1 claim intent created charged 201", text(rows[0]))
	require.Equal(t, "8 201 replay", text(rows[7]))
	require.Equal(t, []string{"94.20%"}, marks(rows[0], "charge"), "the dot stands where Stripe's answer was known")
	require.Equal(t, [4]string{"0.20%", "8", "1.30%", "12"}, place(elements(rows[0], withClass("insert"))[0]))
	require.Equal(t, [4]string{"1.50%", "8", "92.70%", "12"}, place(only(t, elements(rows[0], withClass("call")))))
	require.Equal(t, [4]string{"94.20%", "8", "1.70%", "12"}, place(elements(rows[0], withClass("insert"))[1]))
	for i, row := range rows[1:] {
		require.Empty(t, marks(row, "charge"), "one dot")
		require.Len(t, marks(row, "none"), 1)
		waiting := place(only(t, elements(row, withClass("waiting"))))
		require.Equal(t, view.NewScale(200, "ms").X(float64(i+1)*3/7), waiting[0])
		require.Equal(t, "95.90%", attr(only(t, elements(row, withClass("released"))), "x1"), "all wait for the one record")
	}
	require.Equal(t, "Eight copies of one payment over 196 ms", text(only(t, elements(root, named("caption")))))
	words := text(only(t, elements(root, withClass("section-lede"))))
	require.True(t, strings.HasPrefix(words, "Eight copies of this payment reached the shop within 3.0 ms. The first claimed the key, called Stripe, "+
		"which charged the card, and recorded the answer. Seven waited, and were given the same answer, byte for byte."), words)
	require.Equal(t, "Claim 2.6 ms one transaction: the key, and the payment as pending "+
		"Call 185 ms no transaction, no connection held; intent created at 74.0 ms, the charge known at 188 ms "+
		"Record 3.4 ms one transaction, up to its COMMIT: payment, order, enrolment and the answer "+
		"Replays 7 the same 214 bytes, the last one 4.7 ms after the record", text(only(t, elements(root, withClass("phases")))))
}

// The key goes to whoever's INSERT came first, which need not be the copy that
// came first.
func TestWhoClaimedNeedNotHaveComeFirst(t *testing.T) {
	t.Parallel()
	m := copies(3)
	m.Owners[0].Arrived = at(2)
	m.Replays[0].Arrived = at(0)
	words := text(only(t, elements(happened(t, m), withClass("section-lede"))))
	require.Contains(t, words, "Three copies of this payment reached the shop within 3.0 ms. One of them claimed the key")
}

func TestMoreThanEightCopiesShareALane(t *testing.T) {
	t.Parallel()
	rows := lanes(t, happened(t, copies(20)))
	require.Len(t, rows, 8)
	require.Equal(t, "+13 13 replays", text(rows[7]))
	require.Len(t, marks(rows[7], "none"), 13)
	require.Contains(t, attr(only(t, elements(rows[7], withClass("lane"))), "aria-label"), "13 replays between")

	words := text(only(t, elements(happened(t, lives()["many"]), withClass("section-lede"))))
	require.Contains(t, words, "At least 64 copies of this payment reached the shop within 3.0 ms.")
}

func TestALateReplayDoesNotPressTheRestTogether(t *testing.T) {
	t.Parallel()
	root := happened(t, lives()["late"])
	rows := lanes(t, root)
	require.Len(t, rows, 3)
	require.Empty(t, marks(rows[2], "none"), "it lies beyond the drawing")
	require.Equal(t, "3 later, replay", text(rows[2]))
	require.Contains(t, attr(only(t, elements(rows[2], withClass("lane"))), "aria-label"), "replayed at 600002 ms")
	require.Contains(t, text(only(t, elements(root, withClass("section-lede")))), "One more came after the answer, and was given it again.")
	require.Contains(t, text(only(t, elements(root, withClass("phases")))), "the last one 10.0 min after the record")
}

func TestAKilledOwnerIsDrawnUpToItsLastSignOnly(t *testing.T) {
	t.Parallel()
	root := happened(t, killed())
	rows := lanes(t, root)
	require.Len(t, rows, 3)
	scale := view.NewScale(68.001, "s")
	require.Equal(t, "killed", text(only(t, elements(rows[0], withClass("wrong")))))
	require.Equal(t, []string{scale.X(.074)}, marks(rows[0], "fail"))
	require.Equal(t, []string{scale.X(60.001)}, marks(rows[0], "lapse"))
	require.Empty(t, marks(rows[0], "charge"), "nobody saw when it charged")
	require.Equal(t, [4]string{scale.X(.074), "14", scale.X(60.001), "14"}, place(only(t, elements(rows[0], withClass("lease")))))
	require.Equal(t, scale.X(60.001), attr(only(t, elements(rows[1], withClass("released"))), "x1"))
	require.True(t, hasClass(rows[1], "winner"))
	require.Equal(t, []string{scale.X(63.2)}, marks(rows[1], "charge"))
	require.True(t, strings.HasPrefix(text(rows[2]), "client"))
	require.Equal(t, []string{scale.X(68.001)}, marks(rows[2], "none"))
	require.Equal(t, "The first owner claimed the key, and wrote no end: it was killed, or cut off. When its lease had lapsed, a second owner in another process took over, "+
		"cleared it up with Stripe, and recorded the one charge. One more copy was given the same answer, byte for byte.",
		text(only(t, elements(root, withClass("section-lede")))))
	require.Contains(t, text(only(t, elements(root, withClass("phases")))), "Claim, attempt 2 2.6 ms")
}

// A lease that was cut short by hand ended at an unknown time: its end is not drawn.
func TestALeaseWhoseEndIsNotKnownIsDrawnWithoutAnEnd(t *testing.T) {
	t.Parallel()
	m := killed()
	m.Owners[0].Lease = at(90_000)
	rows := lanes(t, happened(t, m))
	require.Empty(t, marks(rows[0], "lapse"))
	require.Empty(t, elements(rows[1], withClass("released")))
	require.Len(t, elements(rows[0], withClass("lease")), 1)
}

func TestWhatIsNotKnownIsNotDrawn(t *testing.T) {
	t.Parallel()
	root := happened(t, lives()["bare"])
	rows := lanes(t, root)
	require.Empty(t, elements(root, withClass("call")))
	require.Empty(t, elements(rows[1], withClass("waiting")), "nobody knows when it came")
	require.Len(t, marks(rows[1], "none"), 1)
	require.Empty(t, marks(rows[0], "charge"), "nor when the charge was known")
}

func TestEveryLifeReadsAsATableAndStaysInsideItsDrawing(t *testing.T) {
	t.Parallel()
	for name, m := range lives() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := happened(t, m)
			for _, row := range lanes(t, root) {
				lane := only(t, elements(row, withClass("lane")))
				require.NotEmpty(t, attr(lane, "aria-label"))
				require.NotEmpty(t, text(row))
				for _, n := range elements(lane, func(*html.Node) bool { return true }) {
					for _, a := range n.Attr {
						if strings.HasSuffix(a.Val, "%") && a.Val != "100%" {
							require.NotContains(t, a.Val, "-", "before the beginning")
							require.NotContains(t, a.Val, "NaN")
						}
					}
				}
			}
			require.LessOrEqual(t, len(elements(only(t, elements(root, withClass("axis"))), named("text"))), 5)
			legend := elements(only(t, elements(root, withClass("legend"))), named("li"))
			require.NotEmpty(t, legend)
			words := text(only(t, elements(root, withClass("section-lede"))))
			require.NotContains(t, words, "  ")
			require.NotContains(t, words, "..")
		})
	}
}
