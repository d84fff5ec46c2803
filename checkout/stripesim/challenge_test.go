package stripesim_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// browser follows no redirect by itself, so that a test sees where it is sent.
var browser = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// challenged makes a PaymentIntent wait for 3-D Secure and returns its id and the address of the bank's page.
func (c *client) challenged(method string, pairs ...string) (id, page string) {
	c.t.Helper()
	id = c.create(pairs...)
	r := c.confirm(id, "", method, "return_url", "https://shop.test/orders/1?from=bank&x=a%26b#pay")
	require.Equal(c.t, "requires_action", r.text("status"))
	require.Nil(c.t, r.at("latest_charge"))
	require.NotNil(c.t, r.at("payment_method"))
	require.Equal(c.t, "redirect_to_url", r.text("next_action", "type"))
	page = r.text("next_action", "redirect_to_url", "url")
	require.True(c.t, strings.HasPrefix(page, c.url+"/3d_secure/"+id), page)
	return id, page
}

// answer sends the page's form and returns the status and where it leads.
func (c *client) answer(page, outcome string) (int, *url.URL) {
	c.t.Helper()
	u, err := url.Parse(page)
	require.NoError(c.t, err)
	answer, err := browser.PostForm(c.url+u.Path, url.Values{"source": {u.Query().Get("source")}, "outcome": {outcome}})
	require.NoError(c.t, err)
	require.NoError(c.t, answer.Body.Close())
	location, err := answer.Location()
	if err != nil {
		return answer.StatusCode, nil
	}
	return answer.StatusCode, location
}

func read(t *testing.T, address string) (int, string) {
	t.Helper()
	answer, err := http.Get(address)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(raw)
}

func TestChallengeIsAnsweredOnAPageAndLeadsBack(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	for outcome, row := range map[string]struct {
		status  string
		charges int
	}{"succeeded": {"succeeded", 1}, "failed": {"requires_payment_method", 0}} {
		id, page := c.challenged("pm_card_threeDSecure2Required")
		status, html := read(t, page)
		require.Equal(t, 200, status)
		require.Contains(t, html, "$49.00 usd")
		require.Regexp(t, regexp.MustCompile(`<form method="post" action="/3d_secure/`+id+`">`), html)
		require.Contains(t, html, `name="outcome" value="`+outcome+`"`)

		status, back := c.answer(page, outcome)
		require.Equal(t, 303, status)
		require.Equal(t, "shop.test", back.Host)
		require.Equal(t, "pay", back.Fragment)
		q := back.Query()
		require.Equal(t, "bank", q.Get("from"), "the shop's own parameters are kept")
		require.Equal(t, "a&b", q.Get("x"))
		require.Equal(t, id, q.Get("payment_intent"))
		require.True(t, strings.HasPrefix(q.Get("payment_intent_client_secret"), id+"_secret_"))
		require.Equal(t, outcome, q.Get("redirect_status"))
		require.Equal(t, row.status, c.status(id))
		require.Equal(t, row.charges, c.charges(id))

		// A second answer, the other one, changes nothing and leads back too.
		status, back = c.answer(page, map[string]string{"succeeded": "failed", "failed": "succeeded"}[outcome])
		require.Equal(t, 303, status)
		require.Equal(t, outcome, back.Query().Get("redirect_status"))
		require.Equal(t, row.status, c.status(id))
		status, _ = read(t, page)
		require.Equal(t, 410, status)
	}
}

func TestFailedChallengeIsNotADecline(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id, page := c.challenged("pm_card_authenticationRequired")
	c.answer(page, "failed")
	pi := c.get("/v1/payment_intents/" + id)
	require.Equal(t, "payment_intent_authentication_failure", pi.text("last_payment_error", "code"))
	require.Equal(t, "invalid_request_error", pi.text("last_payment_error", "type"))
	require.Nil(t, pi.at("latest_charge"))
	require.Nil(t, pi.at("payment_method"))
	require.Equal(t, "succeeded", c.confirm(id, "", "pm_card_visa").text("status"), "another card may be tried")
}

func TestPassedChallengeMayStillBeDeclined(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id, page := c.challenged("pm_card_threeDSecureRequiredChargeDeclined")
	_, back := c.answer(page, "succeeded")
	require.Equal(t, "failed", back.Query().Get("redirect_status"))
	pi := c.get("/v1/payment_intents/" + id)
	require.Equal(t, "requires_payment_method", pi.text("status"))
	require.Equal(t, "card_declined", pi.text("last_payment_error", "code"))
}

func TestPassedChallengeStandsInTheCharge(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id, page := c.challenged("pm_card_threeDSecure2Required")
	c.answer(page, "succeeded")
	r := c.get("/v1/payment_intents/"+id, "expand[]", "latest_charge")
	require.Equal(t, "authenticated", r.text("latest_charge", "payment_method_details", "card", "three_d_secure", "result"))
}

func TestManualConfirmationIsConfirmedOnceMore(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id, page := c.challenged("pm_card_threeDSecure2Required", "confirmation_method", "manual")
	c.answer(page, "succeeded")
	require.Equal(t, "requires_confirmation", c.status(id))
	require.Equal(t, "succeeded", c.post("/v1/payment_intents/"+id+"/confirm", "").text("status"))
	require.Equal(t, 1, c.charges(id))
}

func TestCanceledPaymentCannotBePassedAnyMore(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id, page := c.challenged("pm_card_threeDSecure2Required")
	require.Equal(t, 200, c.post("/v1/payment_intents/"+id+"/cancel", "").status)
	status, back := c.answer(page, "succeeded")
	require.Equal(t, 303, status)
	require.Equal(t, "failed", back.Query().Get("redirect_status"))
	require.Equal(t, "canceled", c.status(id))
	require.Zero(t, c.charges(id))
}

func TestOldChallengeCannotPayForANewCard(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id, old := c.challenged("pm_card_threeDSecure2Required")
	next := c.confirm(id, "", "pm_card_authenticationRequired", "return_url", "https://shop.test/").text("next_action", "redirect_to_url", "url")
	require.NotEqual(t, old, next)
	c.answer(old, "succeeded")
	require.Equal(t, "requires_action", c.status(id))
	c.answer(next, "succeeded")
	require.Equal(t, "succeeded", c.status(id))
}

func TestWithoutReturnURLTheScriptHandlesTheChallenge(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	r := c.confirm(id, "", "pm_card_threeDSecure2Required")
	require.Equal(t, "use_stripe_sdk", r.text("next_action", "type"))
	status, _ := c.answer(r.text("next_action", "use_stripe_sdk", "stripe_js"), "succeeded")
	require.Equal(t, 200, status, "there is nowhere to go back to")
	require.Equal(t, "succeeded", c.status(id))
}
