package checkout_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/checkout/stripesim"
)

// webhook is an endpoint of the shop, registered at its Stripe.
type webhook struct {
	mu      sync.Mutex
	secrets []string
	results []checkout.EventResult
	refused []error
}

// listen registers an endpoint that hands each delivery to service.
func (s *shop) listen(service *checkout.Service) *webhook {
	s.t.Helper()
	hook := &webhook{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		hook.mu.Lock()
		secrets := hook.secrets
		hook.mu.Unlock()
		event, err := stripepay.Verify(body, r.Header.Get("Stripe-Signature"), secrets, time.Now())
		if err != nil {
			hook.note("", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		result, err := service.HandleEvent(r.Context(), event)
		hook.note(result, err)
		if err != nil {
			w.WriteHeader(http.StatusConflict)
		}
	}))
	s.t.Cleanup(server.Close)
	provider, err := stripepay.New(stripepay.Config{SecretKey: "sk_test_local", Base: s.base})
	require.NoError(s.t, err)
	endpoint, err := provider.CreateEndpoint(s.t.Context(), server.URL+"/webhooks/stripe", "endpoint:"+server.URL)
	require.NoError(s.t, err)
	hook.mu.Lock()
	hook.secrets = []string{endpoint.Secret}
	hook.mu.Unlock()
	return hook
}

func (h *webhook) note(result checkout.EventResult, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.refused = append(h.refused, err)
	}
	h.results = append(h.results, result)
}

func (h *webhook) count(result checkout.EventResult) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.results {
		if r == result {
			n++
		}
	}
	return n
}

// until polls a condition.
func (s *shop) until(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, 20*time.Second, 5*time.Millisecond, what)
}

// status reads an order's status and its newest payment's.
func (s *shop) status(order string) (checkout.OrderStatus, checkout.PaymentStatus) {
	o := s.now(order)
	p, _ := o.Last()
	return o.Status, p.Status
}

func TestEvent(t *testing.T) {
	t.Parallel()

	t.Run("SuccessSettlesAPaymentWhoseAnswerWasLostAndCompletesItsKey", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.listen(s.Service)
		held, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.*", Hold: true, Times: -1})
		require.NoError(t, err)
		order := s.order(course)
		_, err = s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost")
		conflict(t, err, checkout.ErrOutcomeUnknown)
		require.NoError(t, held.Release())
		s.until("the event settles it", func() bool { return s.now(order.ID).Status == checkout.OrderPaid })
		answer, err := s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost")
		require.NoError(t, err)
		require.Equal(t, 201, answer.Status)
		require.True(t, answer.Replayed, "the key was completed by the event")
		s.agree(order.ID, 1)
	})

	t.Run("SuccessBeforeTheAnswerFencesTheOwner", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		hook := s.listen(s.Service)
		_, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.succeeded", BeforeAnswer: true})
		require.NoError(t, err)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		require.NotEmpty(t, payment.Charge)
		s.agree(order.ID, 1)
		require.Equal(t, 1, hook.count(checkout.EventApplied))
		require.Equal(t, 1, s.count("key_history WHERE what = 'completed' AND key = $1", order.PaymentKey))
	})

	t.Run("DuplicatesAndTwoShopsApplyItOnce", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		other, _ := s.instance("two")
		one, two := s.listen(s.Service), s.listen(other)
		_, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.succeeded", Copies: 3, Times: -1})
		require.NoError(t, err)
		order := s.order(course)
		s.paid(order.ID, order.PaymentKey, visa)
		s.until("eight deliveries", func() bool {
			return one.count(checkout.EventApplied)+two.count(checkout.EventApplied)+
				one.count(checkout.EventDuplicate)+two.count(checkout.EventDuplicate) >= 8
		})
		require.Equal(t, 1, one.count(checkout.EventApplied)+two.count(checkout.EventApplied))
		require.Equal(t, 1, s.count("events WHERE type = 'payment_intent.succeeded'"))
		s.agree(order.ID, 1)
	})

	t.Run("AnEarlierAttemptsFailureChangesNothingOnTheNext", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		hook := s.listen(s.Service)
		held, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.payment_failed", Hold: true})
		require.NoError(t, err)
		order := s.order(course)
		declined, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		next := decode[checkout.Problem](t, declined).PaymentKey

		confirming, err := s.stripe.Add(stripesim.Rule{Path: "/v1/payment_intents/*/confirm", Action: stripesim.Hold})
		require.NoError(t, err)
		paid := make(chan error, 1)
		go func() {
			_, err := s.pay(order.ID, next, visa)
			paid <- err
		}()
		require.NoError(t, confirming.Wait(t.Context(), 1))
		held.Release()
		s.until("the late event", func() bool { return hook.count(checkout.EventApplied) == 1 })
		_, status := s.status(order.ID)
		require.Equal(t, checkout.PaymentPending, status, "a pending payment has an owner: hints never end it")
		confirming.Release()
		require.NoError(t, <-paid)
		s.agree(order.ID, 1)
	})

	t.Run("ForgeriesChangeNothing", func(t *testing.T) {
		t.Parallel()
		for _, tamper := range []stripesim.Tamper{
			stripesim.TamperUnsigned, stripesim.TamperSignature, stripesim.TamperBody, stripesim.TamperStale, stripesim.TamperFuture,
		} {
			t.Run(string(tamper), func(t *testing.T) {
				t.Parallel()
				s := open(t)
				hook := s.listen(s.Service)
				_, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.succeeded", Tamper: tamper})
				require.NoError(t, err)
				order := s.order(course)
				_, _ = s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost") // the retry may be faster than giving up
				// The first attempt is forged and refused; the retry is right.
				s.until("the retry settles it", func() bool { return s.now(order.ID).Status == checkout.OrderPaid })
				hook.mu.Lock()
				defer hook.mu.Unlock()
				require.NotEmpty(t, hook.refused)
				require.Equal(t, checkout.EventResult(""), hook.results[0])
			})
		}
	})

	t.Run("AnotherVersionIsAHint", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.listen(s.Service)
		_, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.succeeded", Tamper: stripesim.TamperVersion})
		require.NoError(t, err)
		order := s.order(course)
		_, _ = s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost") // the event may be faster than giving up
		s.until("asked, and settled", func() bool { return s.now(order.ID).Status == checkout.OrderPaid })
		require.Positive(t, s.stripe.Counts().Requests["GET /v1/payment_intents/{id}"])
	})

	t.Run("WrongModeIsIgnored", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		hook := s.listen(s.Service)
		_, err := s.stripe.AddDelivery(stripesim.DeliveryRule{Event: "payment_intent.succeeded", Tamper: stripesim.TamperLivemode})
		require.NoError(t, err)
		order := s.order(course)
		_, _ = s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost") // the event may be faster than giving up
		s.until("ignored", func() bool { return hook.count(checkout.EventIgnored) > 0 })
		require.Equal(t, checkout.OrderOpen, s.now(order.ID).Status)
	})

	t.Run("AmountThatIsNotTheOrdersIsParked", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.pay(order.ID, order.PaymentKey, "pm_sim_reply_lost")
		require.Error(t, err)
		intent := s.intent(order.ID)
		for name, change := range map[string]func(*checkout.Intent){
			"Amount":   func(in *checkout.Intent) { in.Money.Amount-- },
			"Currency": func(in *checkout.Intent) { in.Money.Currency = "eur" },
		} {
			wrong := intent
			change(&wrong)
			result, err := s.HandleEvent(t.Context(), checkout.Event{
				ID: "evt_" + name, Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &wrong, IntentID: wrong.ID,
			})
			require.NoError(t, err)
			require.Equal(t, checkout.EventParked, result, name)
		}
		require.Equal(t, checkout.OrderOpen, s.now(order.ID).Status)
		stuck, err := s.Stuck(t.Context())
		require.NoError(t, err)
		require.Len(t, stuck, 2)
		_, err = s.AskAgain(t.Context(), "evt_never")
		require.ErrorIs(t, err, checkout.ErrNotStuck)
	})

	// An intent that somebody else made or moved, in the name of an order of
	// ours: a person must look, and nothing passes for the payment that is known.
	t.Run("AnotherChargeInAPaidOrdersNameIsParked", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		intent := s.intent(order.ID)
		deliver := func(id string, change func(*checkout.Intent)) checkout.EventResult {
			in := intent
			change(&in)
			result, err := s.HandleEvent(t.Context(), checkout.Event{
				ID: id, Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &in, IntentID: in.ID,
			})
			require.NoError(t, err)
			return result
		}
		require.Equal(t, checkout.EventApplied, deliver("evt_same", func(*checkout.Intent) {}))
		require.Equal(t, checkout.EventParked, deliver("evt_charge", func(in *checkout.Intent) { in.Charge = "ch_second" }))
		require.Equal(t, checkout.EventParked, deliver("evt_intent", func(in *checkout.Intent) { in.ID = "pi_second" }))
		p, _ := s.now(order.ID).Last()
		require.Equal(t, payment.Charge, p.Charge)

		another := s.order("stripe-in-production")
		_, err := s.pay(another.ID, another.PaymentKey, "pm_card_chargeDeclined")
		require.NoError(t, err)
		price := s.now(another.ID).Price
		require.Equal(t, checkout.EventParked, deliver("evt_order", func(in *checkout.Intent) { in.Order, in.Money = another.ID, price }))
		require.Equal(t, checkout.EventParked, deliver("evt_moved", func(in *checkout.Intent) {
			in.ID, in.Order, in.Money = "pi_moved", another.ID, price
		}), "another order's charge")
		s.agree(order.ID, 1)
		s.agree(another.ID, 0)
	})

	t.Run("OursButNotKnownYetIsDeliveredAgainAndOneDayParked", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		intent := checkout.Intent{
			ID: "pi_unknown", Status: checkout.IntentSucceeded, Charge: "ch_unknown", Money: checkout.Money{Amount: 4900, Currency: "usd"},
			Account: account, Order: "ord_aaaaaaaaaaaaaaaaaaaaaaaa",
		}
		event := checkout.Event{ID: "evt_early", Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &intent, IntentID: intent.ID}
		result, err := s.HandleEvent(t.Context(), event)
		require.Error(t, err)
		require.Equal(t, checkout.EventNotYet, result)
		event.CreatedAt = time.Now().Add(-48 * time.Hour)
		result, err = s.HandleEvent(t.Context(), event)
		require.Error(t, err, "it is old, as all are after an outage, and came a moment ago")
		require.Equal(t, checkout.EventNotYet, result)
		stuck, err := s.Stuck(t.Context())
		require.NoError(t, err)
		require.Empty(t, stuck)
		_, err = s.pool.Exec(t.Context(), `UPDATE events SET received_at = received_at - interval '2 hours'`)
		require.NoError(t, err)
		stuck, err = s.Stuck(t.Context())
		require.NoError(t, err)
		require.Len(t, stuck, 1, "also if it never comes again")
		result, err = s.HandleEvent(t.Context(), event)
		require.NoError(t, err)
		require.Equal(t, checkout.EventParked, result)
	})

	t.Run("NotOursIsIgnored", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		result, err := s.HandleEvent(t.Context(), checkout.Event{
			ID: "evt_foreign", Type: "payment_intent.succeeded", CreatedAt: time.Now(),
			Intent: &checkout.Intent{ID: "pi_foreign", Status: checkout.IntentSucceeded, Charge: "ch_foreign"},
		})
		require.NoError(t, err)
		require.Equal(t, checkout.EventIgnored, result)
	})

	t.Run("ARunningDeliveryIsNotAnswered200", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		s.paid(order.ID, order.PaymentKey, visa)
		intent := s.intent(order.ID)
		event := checkout.Event{ID: "evt_twice", Type: "payment_intent.succeeded", CreatedAt: time.Now(), Intent: &intent, IntentID: intent.ID}
		running, err := s.pool.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = running.Rollback(context.Background()) }()
		_, err = running.Exec(t.Context(), `INSERT INTO events (id, type, status) VALUES ('evt_twice', 'x', 'applied')`)
		require.NoError(t, err)
		result, err := s.HandleEvent(t.Context(), event)
		require.Error(t, err)
		require.Equal(t, checkout.EventRunning, result)
		require.NoError(t, running.Rollback(t.Context()))
		result, err = s.HandleEvent(t.Context(), event)
		require.NoError(t, err)
		require.Equal(t, checkout.EventApplied, result)
		result, err = s.HandleEvent(t.Context(), event)
		require.NoError(t, err)
		require.Equal(t, checkout.EventDuplicate, result)
	})

	t.Run("RefundsOfTheDashboardAreRecordedOneByOne", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.listen(s.Service)
		order := s.order(course)
		payment := s.paid(order.ID, order.PaymentKey, visa)
		s.dashboard("/v1/refunds", "payment_intent="+payment.PaymentIntent+"&amount=1900")
		s.until("recorded", func() bool { return len(s.now(order.ID).Refunds) == 1 })
		require.Equal(t, checkout.OrderPaid, s.now(order.ID).Status)
		require.Equal(t, int64(1900), s.now(order.ID).Payments[0].Refunded)
		_, err := s.refund(payment.ID, "the-rest", 3000)
		require.NoError(t, err)
		s.until("settled", func() bool { return s.now(order.ID).Status == checkout.OrderRefunded })
		o := s.now(order.ID)
		require.Len(t, o.Refunds, 2)
		require.Equal(t, int64(4900), o.Payments[0].Refunded)
		require.Equal(t, 0, s.count("enrolments WHERE status = 'active'"))
	})

	t.Run("ADisputeIsARecordBesideThePayment", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.listen(s.Service)
		order := s.order(course)
		s.paid(order.ID, order.PaymentKey, "pm_card_createDispute")
		s.until("recorded", func() bool { return s.count("disputes") == 1 })
		s.agree(order.ID, 1)
	})
}
