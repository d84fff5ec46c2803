package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// silence is a Stripe that does what it is asked and says nothing: no answer to
// a confirmation, to a question or to a cancellation, and no event. Whoever pays
// meanwhile does not know how it ended.
type silence struct {
	s     *stripe
	rules []rule
	event string // the rule that holds the events
}

// silence begins one.
func (s *stripe) silence(t testing.TB) silence {
	t.Helper()
	body, err := json.Marshal(stripesim.DeliveryRule{Times: -1, Hold: true})
	require.NoError(t, err)
	var added struct {
		ID string `json:"id"`
	}
	s.call(t, http.MethodPost, "/_sim/delivery_rules", body, &added)
	all := silence{s: s, event: added.ID}
	t.Cleanup(func() { s.call(t, http.MethodDelete, "/_sim/delivery_rules/"+all.event, nil, nil) })
	for _, r := range []stripesim.Rule{
		{Method: http.MethodPost, Path: confirmPath, At: stripesim.Answer},
		{Method: http.MethodGet, Path: "/v1/payment_intents/*", At: stripesim.Arrival},
		{Method: http.MethodPost, Path: "/v1/payment_intents/*/cancel", At: stripesim.Arrival},
	} {
		r.Action, r.Times = stripesim.Drop, -1
		all.rules = append(all.rules, s.add(t, r))
	}
	return all
}

// answers ends the silence for whoever asks. The events stay held.
func (q silence) answers(t testing.TB) {
	t.Helper()
	for _, r := range q.rules {
		q.s.call(t, http.MethodDelete, "/_sim/rules/"+r.id, nil, nil)
	}
}

// tells lets Stripe send the events, to a shop that no longer asks.
func (q silence) tells(t testing.TB) {
	t.Helper()
	q.s.call(t, http.MethodPost, "/_sim/delivery_rules/"+q.event+"/release", nil, nil)
}
