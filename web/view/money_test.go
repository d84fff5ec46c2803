package view_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/web/view"
)

// answer returns what a page says first, and its money line.
func answer(t *testing.T, root *html.Node) (h1, charged, words string) {
	t.Helper()
	line := only(t, elements(root, withClass("money-line")))
	return text(only(t, elements(root, named("h1")))), attr(line, "data-charged"), text(line)
}

// TestEveryOrderPageAnswersWhetherTheCardWasCharged fixes the copy of each state: the title, and the money line.
func TestEveryOrderPageAnswersWhetherTheCardWasCharged(t *testing.T) {
	t.Parallel()
	want := map[string][3]string{
		"checkout-open":                      {"Idempotency, end to end", "no", "Not charged"},
		"checkout-element":                   {"Idempotency, end to end", "no", "Not charged"},
		"checkout-declined":                  {"Your bank declined the card. Nothing was charged.", "no", "Not charged"},
		"checkout-payment_not_made":          {"The payment was not made. Nothing was charged.", "no", "Not charged"},
		"checkout-provider_busy":             {"Stripe is busy. Nothing was charged.", "no", "Not charged"},
		"checkout-provider_refused":          {"Stripe did not accept our request. Nothing was charged.", "no", "Not charged"},
		"checking-unknown":                   {"We are checking. Do not pay again.", "unknown", "Not known yet"},
		"checking-unknown-resend":            {"We are checking. Do not pay again.", "unknown", "Not known yet"},
		"checking-unknown-resend-token":      {"We are checking. Do not pay again.", "unknown", "Not known yet"},
		"checking-unknown-asking":            {"We are checking. Do not pay again.", "unknown", "Not known yet"},
		"checking-in_progress-resend":        {"This payment is already on its way. Do not pay again.", "unknown", "Not known yet"},
		"checking-in_progress":               {"This payment is already on its way. Do not pay again.", "unknown", "Not known yet"},
		"checking-processing":                {"Your payment is on its way.", "processing", "On its way, not settled yet"},
		"checking-requires_action":           {"Your bank asks you to confirm.", "no", "Not charged. Your bank is asking you."},
		"checking-requires_action-nowhere":   {"Your bank asks you to confirm.", "no", "Not charged. Your bank is asking you."},
		"checking-requires_action-challenge": {"Your bank asks you to confirm.", "no", "Not charged. Your bank is asking you."},
		"checking-closing":                   {"This order is being closed. Do not pay for it.", "unknown", "Not known yet"},
		"checking-handed_over":               {"We could not confirm this payment yet. Do not pay again.", "unknown", "Not known yet"},
		"checking-needs_person":              {"We could not confirm this payment yet. Do not pay again.", "unknown", "Not known yet"},
		"receipt-paid":                       {"The course is yours.", "yes", "Charged once"},
		"receipt-already-paid":               {"You have already paid for this.", "yes", "Charged once, earlier. Not charged again."},
		"receipt-not-given-back":             {"The course is yours.", "yes", "Charged once"},
		"receipt-refund-failed":              {"The course is yours.", "yes", "Charged once"},
		"receipt-refunding":                  {"Your refund is being made.", "processing", "Refund on its way, $49.00"},
		"receipt-part_refunded":              {"The course is yours.", "part", "Charged once, $19.00 refunded"},
		"receipt-refunded":                   {"The money goes back.", "refunded", "Refunded, $49.00"},
		"receipt-refund-accepted":            {"Your refund is being made.", "processing", "Refund on its way, $49.00"},
		"receipt-refund-undone":              {"The refund did not go through.", "yes", "Charged once. The refund did not go through"},
		"receipt-refund-part":                {"The course is yours.", "part", "Charged once, $19.00 refunded"},
		"receipt-dispute-open":               {"The course is yours.", "yes", "Charged once"},
		"receipt-dispute-won":                {"The course is yours.", "yes", "Charged once"},
		"receipt-dispute-lost":               {"The course is yours.", "refunded", "Charged once, given back by your bank"},
		"closed":                             {"This order is closed.", "no", "Not charged"},
		"closed-late-going":                  {"This order is closed.", "processing", "Refund on its way, $49.00"},
		"closed-late-back":                   {"This order is closed.", "refunded", "Refunded, $49.00"},
		"closed-late-here":                   {"This order is closed.", "yes", "Charged once. The refund did not go through"},
		"return-paid":                        {"It is paid.", "yes", "Charged once"},
		"return-checking":                    {"We are checking. Do not pay again.", "unknown", "Not known yet"},
		"return-not_paid":                    {"It is not paid.", "no", "Not charged"},
		"return-refunded":                    {"The money goes back.", "refunded", "Refunded"},
	}
	pages := map[string]*html.Node{}
	for _, story := range stories() {
		pages[story.name] = parse(t, renderPage(t, story.page))
	}
	for name, row := range want {
		require.Contains(t, pages, name)
		h1, charged, words := answer(t, pages[name])
		require.Equal(t, row, [3]string{h1, charged, words}, name)
	}
	for name := range pages {
		if _, ok := want[name]; !ok && !strings.HasSuffix(name, "-replayed") {
			require.NotRegexp(t, "^(checkout|checking|receipt-[^f]|closed|return)", name, "a state whose answer is not checked")
		}
	}
}

func TestAReplaySaysThatItIsOne(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{
		"receipt-paid-replayed":      "The same payment arrived again and got the recorded answer. Your card was charged $49.00, once.",
		"receipt-free-replayed":      "There is one order, and nothing was charged.",
		"receipt-refunded-replayed":  "Nothing was done a second time.",
		"checkout-declined-replayed": "The card was not asked again.",
		"checkout-open-replayed":     "There is one order, and nothing was charged for it yet.",
	} {
		found := false
		for _, story := range stories() {
			if story.name == name {
				found = true
				page := text(parse(t, renderPage(t, story.page)))
				require.Contains(t, page, "This was a replay of your first submission.")
				require.Contains(t, page, words)
			}
		}
		require.True(t, found, name)
	}
}

func TestAnUnknownOutcomeOffersNothingButTheSamePayment(t *testing.T) {
	t.Parallel()
	m := checking(view.OutcomeUnknown)
	m.Resend = &view.Resend{Key: "the-same-key", Method: "pm_sim_reply_lost"}
	root := parse(t, renderPage(t, view.CheckingPage(m)))

	form := only(t, elements(root, named("form")))
	require.Equal(t, "/orders/"+m.Order.ID+"/payments", attr(form, "action"))
	sent := map[string]string{}
	for _, field := range elements(form, named("input")) {
		require.Equal(t, "hidden", attr(field, "type"))
		sent[attr(field, "name")] = attr(field, "value")
	}
	require.Equal(t, map[string]string{"idempotency_key": "the-same-key", "payment_method": "pm_sim_reply_lost"}, sent)
	require.NotContains(t, text(root), "We keep asking", "nobody does")
	require.Equal(t, "Send this same payment again", text(only(t, elements(root, mainButton))))

	m.Resend = nil
	root = parse(t, renderPage(t, view.CheckingPage(m)))
	require.Empty(t, elements(root, named("form")))
	require.NotContains(t, text(root), "We keep asking", "nobody does")
}

// mainButton holds for what the page asks its reader to press first.
func mainButton(n *html.Node) bool {
	_, off := lookup(n, "disabled")
	return hasClass(n, "button") && !hasClass(n, "button-plain") && !off
}

func TestAShopThatKeepsAskingSaysSoAndAsksTheBuyerForNothing(t *testing.T) {
	t.Parallel()
	m := checking(view.OutcomeUnknown)
	m.Asking, m.Resend = true, &view.Resend{Key: "the-same-key", Method: "pm_sim_reply_lost"}
	root := parse(t, renderPage(t, view.CheckingPage(m)))
	require.Contains(t, text(root), "We keep asking until we know. You need not do anything, and you may close this page.")
	require.Len(t, elements(root, named("form")), 1, "for a buyer who does not want to wait")
	require.Empty(t, elements(root, mainButton))
}

func TestTheBanksQuestionLeadsToTheBankAndCanBeGivenUp(t *testing.T) {
	t.Parallel()
	m := checking(view.RequiresAction)
	m.CanCancel, m.GivenUp = true, "15 minutes"
	root := parse(t, renderPage(t, view.CheckingPage(m)))
	require.Equal(t, m.BankURL, attr(only(t, elements(root, mainButton)), "href"))
	form := only(t, elements(root, named("form")))
	require.Equal(t, "/payments/"+m.Payment+"/cancel", attr(form, "action"))
	require.Empty(t, elements(form, named("input")), "it needs no key, and reads no field")
	require.Contains(t, text(root), "If you do not answer, this payment is given up after 15 minutes, and nothing is charged.")
}

func TestAStateThatIsNotKnownDoesNoHarm(t *testing.T) {
	t.Parallel()
	h1, charged, _ := answer(t, parse(t, renderPage(t, view.CheckingPage(checking("something new")))))
	require.Equal(t, "We are checking. Do not pay again.", h1)
	require.Equal(t, "unknown", charged)
}

func TestThePaymentFormSendsTheChosenMethod(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.CheckoutPage(checkout(view.NoOutcome))))
	form := only(t, elements(root, named("form")))
	require.Equal(t, "/orders/"+order.ID+"/payments", attr(form, "action"))
	radios := elements(form, func(n *html.Node) bool { return attr(n, "type") == "radio" })
	require.Len(t, radios, len(checkout(view.NoOutcome).Methods)+len(checkout(view.NoOutcome).Faults))
	var chosen []string
	for _, radio := range radios {
		require.Equal(t, "payment_method", attr(radio, "name"))
		if _, ok := lookup(radio, "checked"); ok {
			chosen = append(chosen, attr(radio, "value"))
		}
	}
	require.Equal(t, []string{"pm_card_visa"}, chosen)
}

func TestTheRefundFormSendsTheWholeAmount(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.ReceiptPage(receipt(view.Paid))))
	form := only(t, elements(root, named("form")))
	require.Equal(t, "/payments/pay_4QN8W1ZC6J/refunds", attr(form, "action"))
	sent := map[string]string{}
	for _, field := range elements(form, named("input")) {
		sent[attr(field, "name")] = attr(field, "value")
	}
	require.Equal(t, map[string]string{"idempotency_key": "01JDZ8REFUNDKEY", "amount": "4900"}, sent)
}

// TestAPartialRefundIsAFormOfItsOwn: in one form with the whole amount, the Enter key in the field of the part would press
// the first button, and give back everything.
func TestAPartialRefundIsAFormOfItsOwn(t *testing.T) {
	t.Parallel()
	m := receipt(view.Paid)
	m.Refund.Part = "19.00"
	forms := elements(parse(t, renderPage(t, view.ReceiptPage(m))), named("form"))
	require.Len(t, forms, 2)
	for i, amount := range []string{"amount", "amount_major"} {
		var names []string
		for _, field := range elements(forms[i], named("input")) {
			names = append(names, attr(field, "name"))
		}
		require.ElementsMatch(t, []string{"idempotency_key", amount}, names)
		require.Len(t, elements(forms[i], named("button")), 1)
	}
}

func TestRefundsAreListedWithTheirState(t *testing.T) {
	t.Parallel()
	m := receipt(view.RefundInProgress)
	m.RefundResend = nil
	m.Refunds = []view.RefundRow{
		{Amount: "$5.00", Date: "14 November 2026", State: view.RefundFailed},
		{Amount: "$9.00", Date: "15 November 2026", State: view.RefundMade, Elsewhere: true},
		{Amount: "$10.00", Date: "16 November 2026", State: view.RefundPending},
	}
	page := parse(t, renderPage(t, view.ReceiptPage(m)))
	require.Contains(t, text(page), "14 November 2026 $5.00 did not go through 15 November 2026, made elsewhere $9.00 given back 16 November 2026 $10.00 on its way")
	require.Empty(t, elements(page, named("form")), "what Stripe has accepted is not sent again")
	require.Contains(t, text(page), "Stripe has accepted the refund of $49.00")
}

func TestProblemWordsCoverEveryCodeAndNameNoMoneyWhereNoneWasAsked(t *testing.T) {
	t.Parallel()
	for _, code := range codes {
		words := view.ProblemWords(code, true)
		require.NotEmpty(t, words.Title, code)
		require.NotEmpty(t, words.Text, code)
		require.NotEmpty(t, words.Money, code)
		require.NotEmpty(t, words.Charged, code)
		require.Empty(t, view.ProblemWords(code, false).Money, code)
	}
	require.Contains(t, view.ProblemWords("insufficient_funds", true).Text, "It reports insufficient funds.")
	for _, secret := range []string{"lost_card", "stolen_card", "fraudulent", "pickup_card", "no_such_code", ""} {
		require.Equal(t, view.DeclineWords("generic_decline"), view.DeclineWords(secret), "a thief must not read what the bank knows")
	}
}
