package view_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/stretchr/testify/require"

	"payonce/static"
	"payonce/web/view"
)

// storybook is where TestStories writes every page, to be looked at in a browser: serve the folder at the root of a host.
var storybook = flag.String("storybook", "", "write every page in every state, as HTML, into this folder")

// story is one page in one state.
type story struct {
	name string
	page templ.Component
}

const paymentKey = "01JDZ8M4T6QK9V3X7C2N5R0HBE"

func frame(section view.Section) view.Frame {
	return view.Frame{Section: section, Mode: view.LocalStripe, Facts: []string{"PostgreSQL 17.6", "Stripe API 2024-09-30"}, Lab: true}
}

var order = view.OrderSummary{
	ID: "ord_7K2MQ9XA4T", Course: "Idempotency, end to end", CourseURL: "/courses/idempotency-end-to-end", Amount: "$49.00",
}

// stories are all pages in all their states.
func stories() []story {
	all := []story{
		{"catalogue", view.CataloguePage(catalogue())},
		{"catalogue-without-start", view.CataloguePage(view.Catalogue{Frame: frame(view.CoursesSection)})},
		{"orders", view.OrdersPage(orders())},
		{"orders-empty", view.OrdersPage(view.Orders{Frame: frame(view.OrdersSection), StartOver: true})},
		{"reading", view.ReadingPage(reading(2))},
		{"reading-first", view.ReadingPage(reading(1))},
		{"reading-last", view.ReadingPage(reading(3))},
		{"policy", view.PolicyPage(policy())},
		{"closed", view.ClosedPage(closed(view.NoLateMoney))},
	}
	all = append(all, story{"kit", view.ReadingPage(kit())})
	all = append(all, ledgerStories()...)
	all = append(all, labStories()...)
	for _, state := range []view.CourseState{view.CourseForSale, view.CourseFree, view.CourseOpen, view.CourseOwned} {
		all = append(all, story{"course-" + string(state), view.CoursePage(course(state))})
	}
	for _, outcome := range []view.Outcome{view.NoOutcome, view.Declined, view.PaymentNotMade, view.ProviderBusy, view.ProviderRefused} {
		m := checkout(outcome)
		all = append(all, story{"checkout-" + nameOr(string(outcome), "open"), view.CheckoutPage(m)})
		m.Replayed = true
		all = append(all, story{"checkout-" + nameOr(string(outcome), "open") + "-replayed", view.CheckoutPage(m)})
	}
	withElement := checkout(view.NoOutcome)
	withElement.Methods, withElement.Faults, withElement.Element = nil, nil, element()
	all = append(all, story{"checkout-element", view.CheckoutPage(withElement)})
	for _, state := range []view.CheckingState{view.OutcomeUnknown, view.InProgress, view.Processing, view.RequiresAction, view.Closing, view.HandedOver, view.NeedsPerson} {
		all = append(all, story{"checking-" + string(state), view.CheckingPage(checking(state))})
	}
	asked := checking(view.RequiresAction)
	asked.BankURL = ""
	all = append(all, story{"checking-requires_action-nowhere", view.CheckingPage(asked)})
	asked.Challenge = &view.Challenge{PublishableKey: "pk_test_1"}
	all = append(all, story{"checking-requires_action-challenge", view.CheckingPage(asked)})
	resend := checking(view.OutcomeUnknown)
	resend.Resend = &view.Resend{Key: paymentKey, Method: "pm_sim_reply_lost"}
	all = append(all, story{"checking-unknown-resend", view.CheckingPage(resend)})
	resend.Resend = &view.Resend{Key: paymentKey, Token: "ctoken_1"}
	all = append(all, story{"checking-unknown-resend-token", view.CheckingPage(resend)})
	resend.Asking = true
	all = append(all, story{"checking-unknown-asking", view.CheckingPage(resend)})
	resend.State, resend.Asking = view.InProgress, false
	all = append(all, story{"checking-in_progress-resend", view.CheckingPage(resend)})
	for _, state := range []view.ReceiptState{view.Paid, view.TakenFree, view.RefundInProgress, view.RefundedInPart, view.RefundedInWhole} {
		m := receipt(state)
		all = append(all, story{"receipt-" + string(state), view.ReceiptPage(m)})
		m.Replayed = true
		all = append(all, story{"receipt-" + string(state) + "-replayed", view.ReceiptPage(m)})
	}
	already, failed, refused := receipt(view.Paid), receipt(view.Paid), receipt(view.Paid)
	already.AlreadyPaid, failed.RefundFailed, refused.NotGivenBack = true, "$49.00", true
	accepted, undone, part := receipt(view.RefundInProgress), receipt(view.RefundUndone), receipt(view.RefundedInPart)
	accepted.RefundResend, undone.LessonURL = nil, ""
	part.Refund = &view.RefundForm{Payment: part.Payment, Minor: "3000", Amount: "$30.00", Key: "01JDZ8REFUNDKEY", Part: "19.00"}
	part.Refunds = []view.RefundRow{
		{Amount: "$5.00", Date: "14 November 2026", State: view.RefundFailed},
		{Amount: "$9.00", Date: "15 November 2026", State: view.RefundMade},
		{Amount: "$10.00", Date: "16 November 2026", State: view.RefundMade, Elsewhere: true},
	}
	all = append(
		all,
		story{"receipt-already-paid", view.ReceiptPage(already)},
		story{"receipt-not-given-back", view.ReceiptPage(refused)},
		story{"receipt-refund-failed", view.ReceiptPage(failed)},
		story{"receipt-refund-accepted", view.ReceiptPage(accepted)},
		story{"receipt-refund-undone", view.ReceiptPage(undone)},
		story{"receipt-refund-part", view.ReceiptPage(part)},
	)
	for _, state := range []view.DisputeState{view.DisputeOpen, view.DisputeWon, view.DisputeLost} {
		m := receipt(view.Paid)
		m.Refund, m.Dispute = nil, &view.Dispute{State: state, Amount: "$49.00"}
		all = append(all, story{"receipt-dispute-" + string(state), view.ReceiptPage(m)})
	}
	for _, late := range []view.LateMoney{view.LateMoneyGoing, view.LateMoneyBack, view.LateMoneyHere} {
		all = append(all, story{"closed-late-" + string(late), view.ClosedPage(closed(late))})
	}
	for _, state := range []view.ReturnState{view.ReturnPaid, view.ReturnChecking, view.ReturnNotPaid, view.ReturnRefunded} {
		all = append(all, story{"return-" + string(state), view.ReturnPage(view.Return{Frame: frame(view.NoSection), State: state, Again: "/orders/ord_7K2MQ9XA4T/return?token=t0ken"})})
	}
	for _, code := range codes {
		all = append(all, story{"problem-" + code, view.ProblemPage(problem(code))})
	}
	return all
}

func nameOr(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// TestStories writes the storybook if it is asked for; rendering alone is worth the test.
func TestStories(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"last-resort": string(view.LastResort)}
	for _, story := range stories() {
		require.NotContains(t, pages, story.name, "two stories of one name")
		pages[story.name] = renderPage(t, story.page)
	}
	if *storybook == "" {
		return
	}
	write := func(path, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	for name, html := range pages {
		write(filepath.Join(*storybook, name+".html"), html)
	}
	for _, name := range []string{"pay.css", "icon.svg"} {
		content, err := static.FS.ReadFile(name)
		require.NoError(t, err)
		write(filepath.Join(*storybook, static.Path(name)), string(content))
	}
}

func renderPage(t *testing.T, page templ.Component) string {
	t.Helper()
	var html strings.Builder
	require.NoError(t, page.Render(context.Background(), &html))
	return html.String()
}
