package stripepay_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/checkout/stripesim"
)

// local is a Stripe of one's own, spoken to over HTTP as the shop does.
type local struct {
	*stripepay.Stripe
	sim  *stripesim.Server
	base string
}

func newLocal(t *testing.T, config stripesim.Config) local {
	t.Helper()
	sim, err := stripesim.New(config)
	require.NoError(t, err)
	s := httptest.NewServer(sim)
	t.Cleanup(func() {
		s.Close()
		require.NoError(t, sim.Close())
	})
	return local{provider(t, s.URL), sim, s.URL}
}

func (l local) create(t *testing.T, order string) checkout.Intent {
	t.Helper()
	intent, err := l.CreateIntent(t.Context(), checkout.IntentParams{
		DownstreamKey: "pi:" + order + ":1", Money: checkout.Money{Amount: 4900, Currency: "usd"},
		Description: "Idempotency, end to end", Account: "acc_1", Order: order,
	})
	require.NoError(t, err)
	return intent
}

func (l local) confirm(t *testing.T, intent, key, method string) (checkout.Intent, error) {
	t.Helper()
	return l.ConfirmIntent(t.Context(), checkout.ConfirmParams{
		DownstreamKey: key, Intent: intent, PaymentMethod: method, ReturnURL: "https://shop.test/orders/ord_1/return",
	})
}

func (l local) refund(t *testing.T, intent, id string, amount int64) (checkout.ProviderRefund, error) {
	t.Helper()
	return l.CreateRefund(t.Context(), checkout.RefundParams{
		DownstreamKey: "refund:" + id, Intent: intent, Amount: amount, Refund: id, Payment: "pay_1", Order: "ord_1",
	})
}

// requireCharges holds what the whole project is about, asked from Stripe.
func (l local) requireCharges(t *testing.T, intent string, want int) {
	t.Helper()
	require.Equal(t, want, l.sim.Counts().ChargesByPaymentIntent[intent])
}

func TestPayAndRepeatUnderTheSameKeys(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	created := l.create(t, "ord_1")
	require.NotEmpty(t, created.ID)
	require.Equal(t, checkout.Intent{
		ID: created.ID, Status: checkout.IntentRequiresPaymentMethod,
		Money: checkout.Money{Amount: 4900, Currency: "usd"}, Account: "acc_1", Order: "ord_1",
	}, created)

	paid, err := l.confirm(t, created.ID, "pay:pay_1:1", "pm_card_visa")
	require.NoError(t, err)
	require.NotEmpty(t, paid.Charge)
	want := created
	want.Status, want.Charge = checkout.IntentSucceeded, paid.Charge
	require.Equal(t, want, paid)

	asked, err := l.Intent(t.Context(), created.ID)
	require.NoError(t, err)
	require.Equal(t, want, asked)

	again, err := l.confirm(t, created.ID, "pay:pay_1:1", "pm_card_visa")
	require.NoError(t, err)
	want.Replayed = true
	require.Equal(t, want, again)

	createdAgain := l.create(t, "ord_1")
	created.Replayed = true
	require.Equal(t, created, createdAgain, "a snapshot of that moment, not of now")
	l.requireCharges(t, created.ID, 1)
}

func TestDeclineIsDeclinedAgainUnderItsKeyAndNotUnderTheNext(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	id := l.create(t, "ord_1").ID
	for _, replayed := range []bool{false, true} {
		_, err := l.confirm(t, id, "pay:pay_1:1", "pm_card_chargeDeclinedInsufficientFunds")
		verdict := faulted(t, err)
		require.Equal(t, checkout.FaultDeclined, verdict.Fault)
		require.Equal(t, "card_declined", verdict.Code)
		require.Equal(t, "insufficient_funds", verdict.DeclineCode)
		require.Equal(t, replayed, verdict.Replayed)
		require.Equal(t, id, verdict.Intent.ID)
		require.Empty(t, verdict.Intent.Charge)
	}
	asked, err := l.Intent(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, asked.Charge, "the latest charge is the failed one")

	paid, err := l.confirm(t, id, "pay:pay_2:1", "pm_card_visa")
	require.NoError(t, err)
	require.Equal(t, checkout.IntentSucceeded, paid.Status)
	l.requireCharges(t, id, 1)
}

func TestNetworkThatMisbehavesChargesOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		method   string
		first    checkout.Fault
		replayed bool // the repeat under the same key
	}{
		{"pm_sim_reply_lost", checkout.FaultUnknown, true},
		{"pm_sim_never_arrived", checkout.FaultUnknown, false},
		{"pm_sim_rate_limited", checkout.FaultBusy, false},
	}
	for _, test := range tests {
		t.Run(test.method, func(t *testing.T) {
			t.Parallel()
			l := newLocal(t, stripesim.Config{})
			id := l.create(t, "ord_1").ID
			_, err := l.confirm(t, id, "pay:pay_1:1", test.method)
			require.Equal(t, test.first, faulted(t, err).Fault)
			require.Equal(t, 1, l.sim.Counts().ConfirmsByPaymentIntent[id].Received, "one call is one request")

			paid, err := l.confirm(t, id, "pay:pay_1:1", test.method)
			require.NoError(t, err)
			require.Equal(t, checkout.IntentSucceeded, paid.Status)
			require.NotEmpty(t, paid.Charge)
			require.Equal(t, test.replayed, paid.Replayed)
			require.Equal(t, 2, l.sim.Counts().ConfirmsByPaymentIntent[id].Received)
			l.requireCharges(t, id, 1)
		})
	}
}

func TestStoredServerErrorEndsByCancel(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	id := l.create(t, "ord_1").ID
	for _, want := range []checkout.Fault{checkout.FaultUnknown, checkout.FaultStored, checkout.FaultStored} {
		_, err := l.confirm(t, id, "pay:pay_1:1", "pm_sim_server_error")
		require.Equal(t, want, faulted(t, err).Fault)
	}
	canceled, err := l.CancelIntent(t.Context(), id, "cancel:ord_1:1:owner")
	require.NoError(t, err)
	require.Equal(t, checkout.IntentCanceled, canceled.Status)
	again, err := l.CancelIntent(t.Context(), id, "cancel:ord_1:1:owner")
	require.NoError(t, err)
	require.True(t, again.Replayed)

	_, err = l.confirm(t, id, "pay:pay_1:2", "pm_card_visa")
	verdict := faulted(t, err)
	require.Equal(t, checkout.FaultUnexpectedState, verdict.Fault)
	require.Equal(t, checkout.IntentCanceled, verdict.Intent.Status)
	l.requireCharges(t, id, 0)
}

func TestUnexpectedStateTellsOfTheMoney(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	id := l.create(t, "ord_1").ID
	paid, err := l.confirm(t, id, "pay:pay_1:1", "pm_card_visa")
	require.NoError(t, err)

	_, confirmErr := l.confirm(t, id, "pay:pay_2:1", "pm_card_visa")
	_, cancelErr := l.CancelIntent(t.Context(), id, "cancel:ord_1:1:owner")
	for _, err := range []error{confirmErr, cancelErr} {
		verdict := faulted(t, err)
		require.Equal(t, checkout.FaultUnexpectedState, verdict.Fault)
		require.Equal(t, paid, *verdict.Intent)
	}
	l.requireCharges(t, id, 1)
}

func TestKeyUsedForSomethingElseIsNoRefusal(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	id := l.create(t, "ord_1").ID
	_, err := l.confirm(t, id, "pay:pay_1:1", "pm_card_visa")
	require.NoError(t, err)

	_, otherCard := l.confirm(t, id, "pay:pay_1:1", "pm_card_mastercard")
	_, otherEndpoint := l.CancelIntent(t.Context(), id, "pay:pay_1:1")
	for _, err := range []error{otherCard, otherEndpoint} {
		require.Equal(t, checkout.FaultKeyMismatch, faulted(t, err).Fault)
	}
}

func TestConcurrentConfirmIsTold(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{LockWait: time.Millisecond})
	id := l.create(t, "ord_1").ID
	held, err := l.sim.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Hold})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := l.ConfirmIntent(t.Context(), checkout.ConfirmParams{
			DownstreamKey: "pay:pay_1:1", Intent: id, PaymentMethod: "pm_card_visa", ReturnURL: "https://shop.test/orders/ord_1/return",
		})
		done <- err
	}()
	require.NoError(t, held.Wait(t.Context(), 1))

	_, err = l.confirm(t, id, "pay:pay_1:1", "pm_card_visa")
	require.Equal(t, checkout.FaultKeyInUse, faulted(t, err).Fault)
	_, err = l.confirm(t, id, "pay:pay_2:1", "pm_card_visa")
	verdict := faulted(t, err)
	require.Equal(t, checkout.FaultUnknown, verdict.Fault, "a lock timeout is no refusal: someone is on it")
	require.Equal(t, "lock_timeout", verdict.Code)

	held.Release()
	require.NoError(t, <-done)
	l.requireCharges(t, id, 1)
}

func TestChallengeNamesTheBanksPage(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	id := l.create(t, "ord_1").ID
	challenged, err := l.confirm(t, id, "pay:pay_1:1", "pm_card_authenticationRequired")
	require.NoError(t, err)
	require.Equal(t, checkout.IntentRequiresAction, challenged.Status)
	require.Contains(t, challenged.NextActionURL, l.base)
	require.Empty(t, challenged.Charge)
	canceled, err := l.CancelIntent(t.Context(), id, "cancel:ord_1:1:owner")
	require.NoError(t, err)
	require.Equal(t, checkout.IntentCanceled, canceled.Status)
	l.requireCharges(t, id, 0)
}

// TestConfirmationTokenPays: what the Payment Element gives in place of a
// method, its challenge included, which is asked for as a page.
func TestConfirmationTokenPays(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]checkout.IntentStatus{
		"pm_card_visa":                   checkout.IntentSucceeded,
		"pm_card_authenticationRequired": checkout.IntentRequiresAction,
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			l := newLocal(t, stripesim.Config{})
			id := l.create(t, "ord_1").ID
			confirmed, err := l.ConfirmIntent(t.Context(), checkout.ConfirmParams{
				DownstreamKey: "pay:pay_1:1", Intent: id, ConfirmationToken: l.token(t, method), ReturnURL: "https://shop.test/orders/ord_1/return",
			})
			require.NoError(t, err)
			require.Equal(t, want, confirmed.Status)
			require.Equal(t, want == checkout.IntentRequiresAction, confirmed.NextActionURL != "")
		})
	}
}

// token makes a confirmation token, as the Payment Element does in a browser.
func (l local) token(t *testing.T, method string) string {
	t.Helper()
	form := url.Values{"payment_method": {method}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.base+"/v1/test_helpers/confirmation_tokens", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer sk_test_1")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var token struct{ ID string }
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&token))
	return token.ID
}

func TestRefundsAreMadeOnceAndFoundAgain(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	id := l.create(t, "ord_1").ID
	paid, err := l.confirm(t, id, "pay:pay_1:1", "pm_card_visa")
	require.NoError(t, err)

	part, err := l.refund(t, id, "ref_1", 900)
	require.NoError(t, err)
	require.Equal(t, checkout.ProviderRefund{
		ID: part.ID, Status: "succeeded", Money: checkout.Money{Amount: 900, Currency: "usd"}, Charge: paid.Charge, Refund: "ref_1",
	}, part)
	again, err := l.refund(t, id, "ref_1", 900)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, part.ID, again.ID)

	_, err = l.refund(t, id, "ref_2", 4001)
	require.Equal(t, checkout.FaultRefused, faulted(t, err).Fault, "more than is left")
	rest, err := l.refund(t, id, "ref_3", 4000)
	require.NoError(t, err)

	list, err := l.Refunds(t.Context(), paid.Charge)
	require.NoError(t, err)
	require.Equal(t, []checkout.ProviderRefund{rest, part}, list, "newest first")
}

func TestUnknownObjectsAndKeysAreRefused(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	_, err := l.Intent(t.Context(), "pi_nobody")
	require.Equal(t, checkout.FaultRefused, faulted(t, err).Fault)
	_, err = l.confirm(t, l.create(t, "ord_1").ID, "pay:pay_1:1", "pm_card_nobody")
	require.Equal(t, checkout.FaultRefused, faulted(t, err).Fault)
}
