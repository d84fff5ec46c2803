package checkout_test

import (
	"context"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
)

// generation reads the order's generation and the intent that is stored for it.
func (s *shop) generation(order string) (generation int, intent string) {
	s.t.Helper()
	require.NoError(s.t, s.pool.QueryRow(s.t.Context(),
		"SELECT generation, coalesce(intent, '') FROM orders WHERE id = $1", order).Scan(&generation, &intent))
	return generation, intent
}

// confirmPath is where confirms go.
const confirmPath = "/v1/payment_intents/*/confirm"

// start pays in the background.
func (s *shop) start(order, key, method string) (done <-chan error) {
	ended := make(chan error, 1)
	go func() {
		_, err := s.pay(order, key, method)
		ended <- err
	}()
	return ended
}

// openAt opens a shop at a Stripe of a kind of its own.
func openAt(t *testing.T, kind stripesim.Config) *shop {
	t.Helper()
	s := open(t)
	stripe, err := stripesim.New(kind)
	require.NoError(t, err)
	server := httptest.NewServer(stripe)
	t.Cleanup(func() { _ = stripe.Close(); server.Close() })
	s.stripe, s.base = stripe, server.URL
	s.Service, s.ledger = s.instance("one")
	return s
}

// TestGeneration: an order has one PaymentIntent at a time. A next one is opened
// only by the attempt that holds the slot, when the current one is known to be
// canceled; and what is said of an older one changes nothing.
func TestGeneration(t *testing.T) {
	t.Parallel()

	t.Run("AnIntentCanceledAtStripeIsFollowedByTheNext", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		declined, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		first := s.intent(order.ID)
		s.dashboard("/v1/payment_intents/"+first.ID+"/cancel", "")
		s.paid(order.ID, decode[checkout.Problem](t, declined).PaymentKey, visa) // its confirm is refused first
		s.agree(order.ID, 1)
		generation, second := s.generation(order.ID)
		require.Equal(t, 2, generation)
		require.NotEqual(t, first.ID, second)
	})

	// Stripe cancels an intent that was confirmed too often. It may say so with
	// the canceled intent or with an error, and may or may not keep that error
	// under the downstream key; and either answer may be lost.
	t.Run("TheCapOnConfirmationsOpensTheNext", func(t *testing.T) {
		t.Parallel()
		for i := range 8 {
			refuses, forgets, lost := i&1 != 0, i&2 != 0, i&4 != 0
			t.Run("Refuses="+strconv.FormatBool(refuses)+"/ForgetsErrors="+strconv.FormatBool(forgets)+"/AnswerLost="+strconv.FormatBool(lost), func(t *testing.T) {
				t.Parallel()
				s := openAt(t, stripesim.Config{ConfirmCap: 2, CapRefuses: refuses, ForgetStateErrors: forgets})
				order := s.order(course)
				key := order.PaymentKey
				for range 2 {
					declined, err := s.pay(order.ID, key, "pm_card_chargeDeclined")
					require.NoError(t, err)
					key = decode[checkout.Problem](t, declined).PaymentKey
				}
				_, first := s.generation(order.ID)
				if lost {
					_, err := s.stripe.Add(stripesim.Rule{Path: confirmPath, Action: stripesim.Drop, At: stripesim.Answer})
					require.NoError(t, err)
					_, err = s.pay(order.ID, key, visa)
					conflict(t, err, checkout.ErrOutcomeUnknown)
					s.lapse()
				}
				s.paid(order.ID, key, visa)
				s.agree(order.ID, 1)
				generation, second := s.generation(order.ID)
				require.Equal(t, 2, generation)
				require.NotEqual(t, first, second)
				in, err := s.Provider.Intent(t.Context(), first)
				require.NoError(t, err)
				require.Equal(t, checkout.IntentCanceled, in.Status, "by the cap")
				require.Len(t, s.now(order.ID).Payments, 3)
			})
		}
	})

	// A state error that Stripe does not keep is decided afresh each time.
	t.Run("AnErrorThatStripeForgetsIsAskedAbout", func(t *testing.T) {
		t.Parallel()
		for _, forgets := range []bool{false, true} {
			t.Run("ForgetsErrors="+strconv.FormatBool(forgets), func(t *testing.T) {
				t.Parallel()
				s := openAt(t, stripesim.Config{ForgetStateErrors: forgets})
				order := s.order(course)
				// The owner's confirm is on its way when somebody cancels its intent
				// in the dashboard; and the answer, an error, is lost too.
				late, err := s.stripe.Add(stripesim.Rule{Path: confirmPath, Action: stripesim.Hold, At: stripesim.Arrival})
				require.NoError(t, err)
				_, err = s.stripe.Add(stripesim.Rule{Path: confirmPath, Action: stripesim.Drop, At: stripesim.Answer})
				require.NoError(t, err)
				owner := s.start(order.ID, order.PaymentKey, visa)
				require.NoError(t, late.Wait(t.Context(), 1))
				s.dashboard("/v1/payment_intents/"+s.intent(order.ID).ID+"/cancel", "")
				late.Release()
				conflict(t, <-owner, checkout.ErrOutcomeUnknown)
				s.lapse()
				s.paid(order.ID, order.PaymentKey, visa)
				s.agree(order.ID, 1)
			})
		}
	})

	t.Run("AZombieOpensNone", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		declined, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		s.dashboard("/v1/payment_intents/"+s.intent(order.ID).ID+"/cancel", "")
		// Its confirm was refused by a canceled intent, and it sleeps before it
		// can open the next.
		refused, err := s.stripe.Add(stripesim.Rule{Path: confirmPath, Action: stripesim.Hold, At: stripesim.Answer})
		require.NoError(t, err)
		zombie := s.start(order.ID, decode[checkout.Problem](t, declined).PaymentKey, visa)
		require.NoError(t, refused.Wait(t.Context(), 1))
		generation, intent := s.generation(order.ID)
		_, err = s.pool.Exec(t.Context(), "UPDATE idempotency_keys SET lease_until = lease_until - interval '30 hours' WHERE status = 'in_progress'")
		require.NoError(t, err)
		result, err := s.CompleteOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, result.Keys, "its attempt has ended: payment_not_made")
		refused.Release()
		require.NoError(t, <-zombie, "it answers from the row")
		after, stored := s.generation(order.ID)
		require.Equal(t, generation, after)
		require.Equal(t, intent, stored)
		s.agree(order.ID, 0)
		s.paid(order.ID, s.now(order.ID).PaymentKey, visa)
		s.agree(order.ID, 1)
	})

	t.Run("AZombiesIntentIsNotStored", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		made, err := s.stripe.Add(stripesim.Rule{Method: "POST", Path: "/v1/payment_intents", Action: stripesim.Hold, At: stripesim.Answer})
		require.NoError(t, err)
		zombie := s.start(order.ID, order.PaymentKey, visa)
		require.NoError(t, made.Wait(t.Context(), 1))
		// So long that Stripe has forgotten what it made.
		_, err = s.stripe.PruneKeys("")
		require.NoError(t, err)
		s.lapse()
		payment := s.paid(order.ID, order.PaymentKey, visa)
		made.Release()
		require.NoError(t, <-zombie, "it answers from the row")
		_, stored := s.generation(order.ID)
		require.Equal(t, payment.PaymentIntent, stored, "the one that was charged")
		require.Equal(t, 1, s.confirms())
		s.agree(order.ID, 1)
	})

	t.Run("CanceledOfAnOlderOneChangesNothing", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		first := s.asked(order)
		view, err := s.Cancel(t.Context(), checkout.CancelRequest{Account: account, Payment: first.ID})
		require.NoError(t, err)
		second, err := s.pay(order.ID, view.PaymentKey, bank)
		require.NoError(t, err)
		require.Equal(t, 202, second.Status, string(second.Body))
		old, err := s.Provider.Intent(t.Context(), first.PaymentIntent)
		require.NoError(t, err)
		require.Equal(t, checkout.IntentCanceled, old.Status)

		result, err := s.HandleEvent(t.Context(), checkout.Event{
			ID: "evt_old", Type: "payment_intent.canceled", CreatedAt: time.Now(), Intent: &old, IntentID: old.ID,
		})
		require.NoError(t, err)
		require.Equal(t, checkout.EventApplied, result)
		o := s.now(order.ID)
		waiting, held := o.Slot()
		require.True(t, held, "the second payment still waits for its buyer")
		require.Equal(t, checkout.PaymentRequiresAction, waiting.Status)
		require.Equal(t, view.PaymentKey, o.PaymentKey)
		require.NoError(t, s.stripe.Finish(s.intent(order.ID).ID, stripesim.Succeeded))
		require.NoError(t, s.Ask(t.Context(), account, order.ID))
		s.agree(order.ID, 1)
	})
}

// scripted is a provider whose answer to a question can be made to come late.
type scripted struct {
	checkout.Provider
	// meanwhile runs between an answer and its arrival, and gives the answer
	// that arrives.
	meanwhile func(truth checkout.Intent) checkout.Intent
}

func (p *scripted) Intent(ctx context.Context, id string) (checkout.Intent, error) {
	in, err := p.Provider.Intent(ctx, id)
	if err == nil && p.meanwhile != nil {
		in = p.meanwhile(in)
	}
	return in, err
}

// TestAnAnswerAboutAnOlderStateIsAskedAgain: the rows moved on between question
// and answer. What is not final speaks only about what they were before it.
func TestAnAnswerAboutAnOlderStateIsAskedAgain(t *testing.T) {
	t.Parallel()
	p := &scripted{}
	s := open(t, func(c *checkout.Config, _ *idempotency.Config) { p.Provider, c.Provider = c.Provider, p })
	order := s.order(course)
	s.asked(order)
	asks := 0
	settling := func(in checkout.Intent) checkout.Intent { // the bank has said yes, and the money is on its way
		in.Status, in.NextActionURL = checkout.IntentProcessing, ""
		return in
	}
	p.meanwhile = func(truth checkout.Intent) checkout.Intent {
		switch asks++; asks {
		case 1: // an old answer, which another one overtakes
			if err := s.Ask(t.Context(), account, order.ID); err != nil {
				t.Error(err)
			}
			return truth
		default:
			return settling(truth)
		}
	}
	require.NoError(t, s.Ask(t.Context(), account, order.ID))
	require.Equal(t, 3, asks, "asked again")
	last, _ := s.now(order.ID).Last()
	require.Equal(t, checkout.PaymentProcessing, last.Status, "it never goes back")
	require.Empty(t, last.NextAction)
}
