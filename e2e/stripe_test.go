package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// stripe is the deployment's local Stripe, asked as anybody may ask it.
type stripe struct{ addr string }

// charge is what a test reads of a charge.
type charge struct {
	ID             string `json:"id"`
	Amount         int64  `json:"amount"`
	AmountRefunded int64  `json:"amount_refunded"`
	Currency       string `json:"currency"`
	Status         string `json:"status"`
	PaymentIntent  string `json:"payment_intent"`
	Metadata       struct {
		Order   string `json:"order"`
		Account string `json:"account"`
	} `json:"metadata"`
}

// charges lists the charges that took money: the bank statement. It reads every
// page of the list.
func (s *stripe) charges(t testing.TB) []charge {
	t.Helper()
	var all []charge
	for after := ""; ; {
		query := url.Values{"limit": {"100"}}
		if after != "" {
			query.Set("starting_after", after)
		}
		var page struct {
			Data    []charge `json:"data"`
			HasMore bool     `json:"has_more"`
		}
		s.call(t, http.MethodGet, "/v1/charges?"+query.Encode(), nil, &page)
		for _, c := range page.Data {
			after = c.ID
			if c.Status == "succeeded" {
				all = append(all, c)
			}
		}
		if !page.HasMore {
			return all
		}
	}
}

// chargesOf lists the charges that took money for an order.
func (s *stripe) chargesOf(t testing.TB, o order) []charge {
	t.Helper()
	var of []charge
	for _, c := range s.charges(t) {
		if c.Metadata.Order == o.ID {
			of = append(of, c)
		}
	}
	return of
}

// requireOneCharge requires that an order was charged once, in full.
func (s *stripe) requireOneCharge(t testing.TB, o order) charge {
	t.Helper()
	charges := s.chargesOf(t, o)
	require.Len(t, charges, 1, "charges for the order")
	require.Equal(t, o.Amount, charges[0].Amount)
	require.Equal(t, o.Currency, charges[0].Currency)
	return charges[0]
}

// received lists the requests that Stripe was sent, those of this test included.
func (s *stripe) received(t testing.TB) (all []stripesim.Request) {
	t.Helper()
	s.call(t, http.MethodGet, "/_sim/requests", nil, &all)
	return all
}

// changes counts the requests that could change something about money. Each shop
// also registers where it wants to be told of events.
func (s *stripe) changes(t testing.TB) int {
	t.Helper()
	n := 0
	for _, r := range s.received(t) {
		if r.Method != http.MethodGet && !strings.HasPrefix(r.Path, "/v1/webhook_endpoints") {
			n++
		}
	}
	return n
}

// confirms tells what became of the confirmations of a PaymentIntent.
func (s *stripe) confirms(t testing.TB, intent string) stripesim.Confirms {
	t.Helper()
	var counts stripesim.Counts
	s.call(t, http.MethodGet, "/_sim/counts", nil, &counts)
	return counts.ConfirmsByPaymentIntent[intent]
}

// running tells which process answers as the local Stripe.
func (s *stripe) running(t testing.TB) (who stripesim.Identity) {
	t.Helper()
	s.call(t, http.MethodGet, "/_sim/identity", nil, &who)
	return who
}

// rule is a rule in force at the local Stripe.
type rule struct {
	s  *stripe
	id string
}

// The requests that rules are for.
const (
	confirmPath = "/v1/payment_intents/*/confirm"
	refundPath  = "/v1/refunds"
)

// add puts a rule in force.
func (s *stripe) add(t testing.TB, r stripesim.Rule) rule {
	t.Helper()
	body, err := json.Marshal(r)
	require.NoError(t, err)
	var added struct {
		ID string `json:"id"`
	}
	s.call(t, http.MethodPost, "/_sim/rules", body, &added)
	return rule{s, added.ID}
}

// hold lets one confirmation wait at a point.
func (s *stripe) hold(t testing.TB, at stripesim.Point) rule {
	t.Helper()
	return s.add(t, stripesim.Rule{Method: http.MethodPost, Path: confirmPath, Action: stripesim.Hold, At: at})
}

// keepToItself lets Stripe tell nobody of its events any more. With them the
// shop hears of a charge within milliseconds whatever became of the answer, and
// a test of the answer would be a test of the event.
func (s *stripe) keepToItself(t testing.TB) {
	t.Helper()
	s.addDelivery(t, stripesim.DeliveryRule{Times: -1, Drop: true})
}

// addDelivery puts a rule for deliveries in force.
func (s *stripe) addDelivery(t testing.TB, r stripesim.DeliveryRule) heldEvents {
	t.Helper()
	body, err := json.Marshal(r)
	require.NoError(t, err)
	var added struct {
		ID string `json:"id"`
	}
	s.call(t, http.MethodPost, "/_sim/delivery_rules", body, &added)
	return heldEvents{s, added.ID}
}

// heldEvents are deliveries that wait.
type heldEvents struct {
	s  *stripe
	id string
}

// holdEvents keeps every delivery of a kind of event until it is released.
func (s *stripe) holdEvents(t testing.TB, kind string) heldEvents {
	t.Helper()
	return s.addDelivery(t, stripesim.DeliveryRule{Event: kind, Times: -1, Hold: true})
}

// release sends them, and ends the rule.
func (h heldEvents) release(t testing.TB) {
	t.Helper()
	h.s.call(t, http.MethodPost, "/_sim/delivery_rules/"+h.id+"/release", nil, nil)
}

// reached returns when the rule has acted on a call.
func (r rule) reached(t testing.TB) {
	t.Helper()
	r.s.call(t, http.MethodPost, "/_sim/rules/"+r.id+"/wait?timeout="+patience.String(), nil, nil)
}

// release lets the call that the rule holds go on.
func (r rule) release(t testing.TB) {
	t.Helper()
	r.s.call(t, http.MethodPost, "/_sim/rules/"+r.id+"/release", nil, nil)
}

// drop breaks the connection of the call that the rule holds.
func (r rule) drop(t testing.TB) {
	t.Helper()
	r.s.call(t, http.MethodPost, "/_sim/rules/"+r.id+"/break", nil, nil)
}

func (s *stripe) call(t testing.TB, method, path string, body []byte, into any) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.addr+path, bytes.NewReader(body))
	require.NoError(t, err)
	r.SetBasicAuth("sk_test_local", "")
	got, err := plainClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.StatusCode, "%s %s: %s", method, path, text)
	if into != nil {
		require.NoError(t, json.Unmarshal(text, into), string(text))
	}
}
