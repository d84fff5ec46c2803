package checkout_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
)

// object gives an object of the local Stripe as it is now.
func (s *shop) object(path string) (object map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+path, nil)
	require.NoError(s.t, err)
	req.SetBasicAuth("sk_test_local", "")
	answer, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	require.NoError(s.t, json.NewDecoder(answer.Body).Decode(&object))
	return object
}

// TestDispute: what is written is how the dispute stands, in whatever order its
// events come.
func TestDispute(t *testing.T) {
	t.Parallel()
	// disputed is a paid order whose charge the bank questions.
	disputed := func(t *testing.T) (s *shop, order, dispute string) {
		s = open(t)
		placed := s.order(course)
		payment := s.paid(placed.ID, placed.PaymentKey, "pm_card_createDispute")
		s.until("there is a dispute", func() bool {
			list := s.object("/v1/disputes?payment_intent=" + payment.PaymentIntent)["data"].([]any)
			if len(list) == 1 {
				dispute = list[0].(map[string]any)["id"].(string)
			}
			return dispute != ""
		})
		return s, placed.ID, dispute
	}
	status := func(s *shop, order string) string {
		list, err := s.Disputes(s.t.Context(), account, order)
		require.NoError(s.t, err)
		require.Len(s.t, list, 1)
		return list[0].Status
	}
	event := func(id, kind, dispute string) checkout.Event {
		return checkout.Event{ID: id, Type: "charge.dispute." + kind, DisputeID: dispute}
	}

	t.Run("ClosedBeforeItWasCreatedStaysClosed", func(t *testing.T) {
		t.Parallel()
		s, order, dispute := disputed(t)
		s.handled(event("evt_early", "updated", dispute), checkout.EventApplied)
		require.Equal(t, "needs_response", status(s, order))
		s.dashboard("/v1/disputes/"+dispute, "evidence[uncategorized_text]=winning_evidence&submit=true")
		s.handled(event("evt_closed", "closed", dispute), checkout.EventApplied)
		require.Equal(t, "won", status(s, order))
		s.handled(event("evt_created", "created", dispute), checkout.EventApplied)
		require.Equal(t, "won", status(s, order))
		require.Equal(t, checkout.OrderPaid, s.now(order).Status)
		s.agree(order, 1)
	})

	t.Run("AnAnswerFromBeforeIsAskedForAgain", func(t *testing.T) {
		t.Parallel()
		s, order, dispute := disputed(t)
		s.handled(event("evt_created", "created", dispute), checkout.EventApplied)
		slow, err := s.stripe.Add(stripesim.Rule{Method: "GET", Path: "/v1/disputes/*", Action: stripesim.Hold, At: stripesim.Answer, Times: 1})
		require.NoError(t, err)
		late := make(chan error, 1)
		go func() {
			_, err := s.HandleEvent(t.Context(), event("evt_updated", "updated", dispute))
			late <- err
		}()
		require.NoError(t, slow.Wait(t.Context(), 1)) // it has its answer: needs_response
		// No final status, which could be told from an older one without asking.
		_, err = s.pool.Exec(t.Context(), `UPDATE disputes SET status = 'under_review', version = version + 1`)
		require.NoError(t, err)
		s.dashboard("/v1/disputes/"+dispute, "evidence[uncategorized_text]=losing_evidence&submit=true")
		slow.Release()
		require.NoError(t, <-late)
		require.Equal(t, "lost", status(s, order))
	})
}
