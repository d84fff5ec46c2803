package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWithoutScript: the shop in a browser that runs no script. The same
// ledger, told in pages.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	shop := d.open(t)

	visitor := func(t *testing.T) reader { return reader{d.customer(t, shop)} }
	// atCheckout orders a course on its page and returns the checkout page.
	atCheckout := func(t *testing.T, r reader, slug string) page {
		t.Helper()
		p := r.submit(r.visit("/courses/"+slug).form(t, "Go to checkout"))
		require.Equal(t, http.StatusOK, p.status)
		require.Equal(t, []int{http.StatusSeeOther}, p.led)
		require.Contains(t, p.text(), "Not charged")
		return p
	}
	orderOf := func(t *testing.T, r reader, p page) order {
		t.Helper()
		id, _, _ := strings.Cut(strings.TrimPrefix(p.path, "/orders/"), "?")
		return r.order(id)
	}
	const course = "idempotency-end-to-end"

	t.Run("ACourseIsBoughtByPlainFormsAndChargedOnce", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		front := r.visit("/")
		require.Contains(t, front.html, `href="/courses/`+course+`"`)
		require.Contains(t, front.text(), "$49.00")

		checkout := atCheckout(t, r, course)
		pay := checkout.form(t, "Pay $49.00")
		require.Contains(t, pay.html, `value="pm_card_visa"`)
		receipt := r.submit(pay, "payment_method", "pm_card_visa")
		require.Equal(t, []int{http.StatusSeeOther}, receipt.led)
		require.Equal(t, []string{""}, receipt.header)
		require.Equal(t, checkout.path, receipt.path)
		require.Contains(t, receipt.text(), "Charged once")
		require.NotContains(t, receipt.text(), "replay")
		o := orderOf(t, r, receipt)
		ch := d.stripe.requireOneCharge(t, o)
		require.Contains(t, receipt.text(), ch.ID)

		require.Contains(t, receipt.html, `href="/courses/`+course+`/lessons/1"`)
		require.Equal(t, http.StatusOK, r.visit("/courses/"+course+"/lessons/1").status)
		require.Contains(t, r.visit("/orders").html, `href="/orders/`+o.ID+`"`)
		require.Equal(t, receipt.text(), r.visit(receipt.path).text(), "a refresh shows the same")

		// Back, and the button once more.
		again := r.submit(pay, "payment_method", "pm_card_visa")
		require.Equal(t, []string{"true"}, again.header)
		require.Equal(t, checkout.path+"?replayed=1", again.path)
		require.Contains(t, again.text(), "This was a replay of your first submission.")
		require.Contains(t, again.text(), "Charged once")
		require.Equal(t, 1, d.stripe.confirms(t, ch.PaymentIntent).Received)
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("EightSubmitsAtOnceEndOnOneReceipt", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		checkout := atCheckout(t, r, course)
		pay := checkout.form(t, "Pay")
		answers := atOnce(8, func(int) answer {
			return r.raw(http.MethodPost, pay.action, "payment_method=pm_card_visa&idempotency_key="+pay.hidden["idempotency_key"],
				"Accept", accepts, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
		})
		for _, a := range answers {
			require.NoError(t, a.err)
			require.Equal(t, http.StatusSeeOther, a.status)
			require.True(t, strings.HasPrefix(a.header.Get("Location"), checkout.path))
		}
		eventually(t, "the order is paid", func() bool { return orderOf(t, r, checkout).Status == "paid" })
		require.Contains(t, r.visit(checkout.path).text(), "Charged once")
		d.stripe.requireOneCharge(t, orderOf(t, r, checkout))
	})

	t.Run("TwoCoursePagesGiveOneOrder", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		one, two := r.visit("/courses/"+course).form(t, "Go to checkout"), r.visit("/courses/"+course).form(t, "Go to checkout")
		require.NotEqual(t, one.hidden["idempotency_key"], two.hidden["idempotency_key"])
		first, second := r.submit(one), r.submit(two)
		require.Equal(t, first.path, second.path)
		require.Equal(t, first.form(t, "Pay").hidden, second.form(t, "Pay").hidden, "one key for both tabs")
	})

	t.Run("ADeclineSaysSoAndTheNextCardCharges", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		old := atCheckout(t, r, course).form(t, "Pay")
		declined := r.submit(old, "payment_method", "pm_card_chargeDeclinedInsufficientFunds")
		require.Contains(t, declined.text(), "Your bank declined the card. Nothing was charged. It reports insufficient funds.")
		next := declined.form(t, "Pay")
		require.NotEqual(t, old.hidden, next.hidden)

		again := r.submit(old, "payment_method", "pm_card_chargeDeclinedInsufficientFunds")
		require.Equal(t, []string{"true"}, again.header)
		require.Contains(t, again.text(), "This was a replay of your first submission. The card was not asked again.")

		// The page of the first attempt, with another card: its key is spent.
		stale := r.submit(old, "payment_method", "pm_card_visa")
		require.Equal(t, http.StatusUnprocessableEntity, stale.status)
		require.Contains(t, stale.text(), "This page is out of date. Nothing was sent.")
		require.Contains(t, stale.html, `href="`+strings.TrimSuffix(old.action, "/payments")+`"`, "a way on, to the order")

		require.Contains(t, r.submit(next, "payment_method", "pm_card_visa").text(), "Charged once")
		d.stripe.requireOneCharge(t, orderOf(t, r, declined))
	})

	t.Run("AnUnknownOutcomeSaysDoNotPayAgainAndSendsTheSameKey", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, clientsOnly)
		r := reader{d.customer(t, d.open(t))}
		d.stripe.keepToItself(t)
		pay := atCheckout(t, r, course).form(t, "Pay")
		checking := r.submit(pay, "payment_method", "pm_sim_reply_lost")
		require.Contains(t, checking.text(), "We are checking. Do not pay again.")
		require.Contains(t, checking.text(), "Not known yet")
		o := orderOf(t, r, checking)

		// The only button sends the very same request.
		resend := formPattern.FindAllStringSubmatch(checking.html, -1)
		var same form
		for _, f := range resend {
			if f[1] == pay.action {
				same = checking.form(t, text(f[2]))
			}
		}
		require.Equal(t, pay.hidden["idempotency_key"], same.hidden["idempotency_key"])
		require.Equal(t, "pm_sim_reply_lost", same.hidden["payment_method"])
		var ended page
		eventually(t, "the same request finds the charge", func() bool {
			ended = r.submit(same)
			return !strings.Contains(ended.text(), "Do not pay")
		})
		require.Contains(t, ended.text(), "Charged once")
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("AStalePageOfAPaidOrderSaysAlreadyPaid", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		pay := atCheckout(t, r, course).form(t, "Pay")
		declined := r.submit(pay, "payment_method", "pm_card_chargeDeclined")
		other := declined.form(t, "Pay") // left open in another tab
		o := orderOf(t, r, declined)
		r.paid(r.pay(o, newKey(), "pm_card_mastercard"))

		paid := r.submit(other, "payment_method", "pm_card_visa")
		require.Equal(t, []int{http.StatusSeeOther}, paid.led)
		require.Contains(t, paid.text(), "You have already paid for this.")
		require.Contains(t, paid.text(), "Charged once, earlier. Not charged again.")
		d.stripe.requireOneCharge(t, o)

		// And the course's page from before: it is owned now.
		require.Contains(t, r.visit("/courses/"+course).text(), "This course is yours.")
	})

	t.Run("AStaleCoursePageOfAnOwnedCourseLeadsToIt", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		before := r.visit("/courses/"+course).form(t, "Go to checkout")
		o, _ := r.buy(course)
		after := r.submit(before)
		require.Equal(t, http.StatusOK, after.status)
		require.True(t, strings.HasPrefix(after.path, "/courses/"+course), after.path)
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("ALostSessionSaysSo", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		pay := atCheckout(t, r, course).form(t, "Pay")
		o := r.place("stripe-in-production")
		for _, lose := range []func(){
			r.forget,
			func() { r.forget(); r.setCookie("payonce", "signed-by-somebody-else") },
		} {
			lose()
			p := r.submit(pay, "payment_method", "pm_card_visa")
			require.Equal(t, http.StatusUnauthorized, p.status)
			require.Contains(t, p.text(), "We do not know who you are yet.")
			require.Contains(t, p.text(), "Not charged by this request")
			require.Contains(t, p.html, `href="/"`)
		}
		require.Empty(t, d.stripe.chargesOf(t, o))
	})

	t.Run("AnotherCustomersPageSaysThatNothingIsThere", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		checkout := atCheckout(t, r, course)
		pay := checkout.form(t, "Pay")
		o := orderOf(t, r, checkout)

		// Started over in another tab; this one still shows the old order.
		require.Equal(t, http.StatusOK, r.follow(http.MethodPost, "/session", "").status)
		p := r.submit(pay, "payment_method", "pm_card_visa")
		require.Equal(t, http.StatusNotFound, p.status)
		require.Contains(t, p.text(), "There is no such page.")
		require.Contains(t, p.text(), "to you before you started over")
		require.Equal(t, http.StatusNotFound, r.visit(checkout.path).status)
		require.Empty(t, d.stripe.chargesOf(t, o))
	})

	t.Run("AnExpiredOrdersPageSaysThatItIsClosed", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		checkout := atCheckout(t, r, course)
		o := orderOf(t, r, checkout)
		require.Equal(t, int64(1), d.execute(t, "UPDATE orders SET status = 'expired', expires_at = clock_timestamp() WHERE id = $1", o.ID))
		p := r.submit(checkout.form(t, "Pay"), "payment_method", "pm_card_visa")
		require.Equal(t, []int{http.StatusSeeOther}, p.led)
		require.Contains(t, p.text(), "This order is closed.")
		require.Contains(t, p.html, `href="/courses/`+course+`"`)
		require.Empty(t, d.stripe.chargesOf(t, o))
	})

	t.Run("AFormFromAnotherSiteIsRefusedOnAPage", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		pay := atCheckout(t, r, course).form(t, "Pay")
		a := r.raw(http.MethodPost, pay.action, "payment_method=pm_card_visa&idempotency_key="+pay.hidden["idempotency_key"],
			"Accept", accepts, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example")
		require.Equal(t, http.StatusForbidden, a.status)
		require.Contains(t, text(a.body), "This request came from another site.")
	})

	t.Run("ARefundGivesTheMoneyBackOnce", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		receipt := r.submit(atCheckout(t, r, course).form(t, "Pay"), "payment_method", "pm_card_visa")
		giveBack := receipt.form(t, "Give back $49.00")
		refunded := r.submit(giveBack)
		require.Contains(t, refunded.text(), "Refunded, $49.00")
		again := r.submit(giveBack)
		require.Equal(t, []string{"true"}, again.header)
		require.Contains(t, again.text(), "This was a replay of your first submission.")
		o := orderOf(t, r, refunded)
		require.Equal(t, o.Amount, d.stripe.requireOneCharge(t, o).AmountRefunded)
		require.Equal(t, http.StatusNotFound, r.visit("/courses/"+course+"/lessons/1").status, "the course is closed")
		atCheckout(t, r, course)
	})

	t.Run("AFreeCourseIsTakenByOneForm", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		take := r.visit("/courses/why-select-cannot-answer").form(t, "Take the course")
		receipt := r.submit(take)
		require.Contains(t, receipt.text(), "It is free: no card, and nothing was charged.")
		require.Contains(t, r.submit(take).text(), "This was a replay of your first submission.")
	})

	t.Run("AnAddressThatIsNoneIsAPage", func(t *testing.T) {
		t.Parallel()
		r := visitor(t)
		for _, path := range []string{"/nowhere", "/orders/ord_none", "/courses/alchemy", "/courses/" + course + "/lessons/99"} {
			require.Equal(t, http.StatusNotFound, r.visit(path).status, path)
		}
	})
}
