package web

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// orderPage shows an order as it stands now. It asks the order's status first
// and its slot second: only an open order whose slot is free may offer Pay.
func (s *Server) orderPage(c echo.Context, o checkout.Order) error {
	switch o.Status {
	case checkout.OrderPaid, checkout.OrderRefunded:
		m, err := s.receipt(c, o)
		if err != nil {
			return err
		}
		m.Happened = s.whatHappened(c, o)
		return s.sendPage(c, http.StatusOK, view.ReceiptPage(m))
	case checkout.OrderExpired:
		return s.sendPage(c, http.StatusOK, view.ClosedPage(s.closed(o)))
	}
	if _, taken := o.Slot(); taken || o.Closing {
		m := s.checking(c, o)
		m.Happened = s.whatHappened(c, o)
		return s.sendPage(c, http.StatusOK, view.CheckingPage(m))
	}
	m := s.checkout(c, o)
	m.Happened = s.whatHappened(c, o)
	return s.sendPage(c, http.StatusOK, view.CheckoutPage(m))
}

func summary(o checkout.Order) view.OrderSummary {
	return view.OrderSummary{ID: o.ID, Course: o.Course.Title, CourseURL: coursePath(o.Course.Slug), Amount: price(o.Price)}
}

// replayed is true on the page that a replay led to.
func replayed(c echo.Context) bool { return c.QueryParam("replayed") == "1" }

// refusedBy gives the code of the refusal that led to the page. It chooses
// between true sentences only: the address is the client's to write.
func refusedBy(c echo.Context) string { return c.QueryParam("code") }

// unanswered are the codes with which POST /payments/{id}/cancel leads back when
// Stripe did not carry it out.
var unanswered = map[string]bool{"outcome_unknown": true, "provider_busy": true, "provider_refused": true}

// checkout is the page of an order that can be paid now.
func (s *Server) checkout(c echo.Context, o checkout.Order) view.Checkout {
	m := view.Checkout{
		Frame: s.frame(view.OrdersSection), Order: summary(o), Key: o.PaymentKey, Replayed: replayed(c),
		Script: s.script(), Try: s.try(o), Element: s.element(c, o),
	}
	last, tried := o.Last()
	if tried {
		m.Outcome = outcome(last, refusedBy(c))
	}
	if m.Outcome == view.Declined {
		// The code that a buyer may be told; see PaymentView.
		reason := last.View().DeclineCode
		if reason == "" {
			reason = last.Code
		}
		m.Reason = view.DeclineWords(reason)
	}
	for _, method := range s.cfg.Service.Methods() {
		row := view.Method{Token: method.ID, Name: method.Name, Note: method.Note, Checked: method.ID == last.PaymentMethod}
		switch {
		case !method.Fault:
			m.Methods = append(m.Methods, row)
		case s.cfg.Demo:
			m.Faults = append(m.Faults, row)
		}
	}
	if last.PaymentMethod == "" && len(m.Methods) > 0 {
		m.Methods[0].Checked = true
	}
	return m
}

// outcome is what became of the last attempt, on an order that can be paid.
func outcome(p checkout.Payment, code string) view.Outcome {
	switch p.Status {
	case checkout.PaymentFailed:
		return view.Declined
	case checkout.PaymentCanceled:
		return view.PaymentNotMade
	case checkout.PaymentReleased:
		if code == "provider_refused" {
			return view.ProviderRefused
		}
		return view.ProviderBusy
	}
	return view.NoOutcome
}

// checking is the page of an order that cannot be paid now and is not settled.
func (s *Server) checking(c echo.Context, o checkout.Order) view.Checking {
	m := view.Checking{
		Frame: s.frame(view.OrdersSection), Order: summary(o), State: view.Closing, Replayed: replayed(c), Script: s.script(),
		Asking: s.cfg.Completes,
		Trail:  []view.Moment{at(o.CreatedAt, "The order was placed.")},
	}
	now := "The order is being closed."
	if p, taken := o.Slot(); taken {
		// Since the claim: a payment that was released, and claimed again later,
		// has not been on its way in between.
		m.Payment, m.Age = p.ID, time.Since(p.UpdatedAt)
		m.Trail = append(m.Trail, at(p.CreatedAt, "The payment was claimed, to be sent to Stripe under one key."))
		switch p.Status {
		case checkout.PaymentRequiresAction:
			m.State, m.BankURL, m.CanCancel = view.RequiresAction, p.NextAction, true
			m.Unanswered = unanswered[refusedBy(c)]
			m.Challenge = s.challengeOf(c, p)
			if s.cfg.Completes {
				m.GivenUp = span(s.cfg.Policy.ActionTimeout)
			}
			now = "The bank waits for you to confirm."
		case checkout.PaymentProcessing:
			m.State = view.Processing
			now = "Stripe has accepted the payment and settles it later."
		default:
			m.State = s.pending(c, o, p)
			m.Asking = s.cfg.Completes && m.State != view.NeedsPerson
			now = "The payment is not settled."
			// The same key and the same method or token: whoever sends this finds
			// out how that payment ended, and starts none.
			m.Resend = &view.Resend{Key: p.Key, Method: p.PaymentMethod, Token: p.ConfirmationToken}
		}
		if o.Closing {
			m.State, m.Resend = view.Closing, nil
		}
	}
	last := at(time.Now(), now)
	last.Now = true
	m.Trail = append(m.Trail, last)
	return m
}

// handOver is how long a payment may be on its way before the page says that it
// may take long; submission.js has the same figure.
const handOver = 2 * time.Minute

// pending tells a payment that is being carried out from one whose outcome
// nobody knows. After two minutes it is handed over, whatever the last answer
// said, and at the end of the completer's schedule a person looks at it. Before,
// who was just told by the API is told the same by the page; else it goes by the
// time that one attempt has. Only the words depend on it.
func (s *Server) pending(c echo.Context, o checkout.Order, p checkout.Payment) view.CheckingState {
	if time.Since(p.UpdatedAt) >= handOver {
		if s.needsPerson(c, o, p) {
			return view.NeedsPerson
		}
		return view.HandedOver
	}
	switch refusedBy(c) {
	case "outcome_unknown":
		return view.OutcomeUnknown
	case "request_in_progress", "payment_in_progress", "claim_contended":
		return view.InProgress
	}
	if time.Since(p.UpdatedAt) < s.cfg.Policy.ProviderTimeout {
		return view.InProgress
	}
	return view.OutcomeUnknown
}

// needsPerson is true if the ledger's page says so of the payment's key. A
// ledger that cannot be read does not take the page with it.
func (s *Server) needsPerson(c echo.Context, o checkout.Order, p checkout.Payment) bool {
	keys, err := s.cfg.Ledger.KeysOf(c.Request().Context(), ledgerKeys, o.Account)
	if err != nil {
		s.cfg.Log.WarnContext(c.Request().Context(), "reading the state of a key", slog.String("request", visitOf(c).id), slog.Any("err", err))
	}
	for _, k := range keys {
		if string(k.Key) == p.Key {
			return checkout.NeedsPerson(k)
		}
	}
	return false
}

func at(t time.Time, text string) view.Moment {
	return view.Moment{Clock: clock(t), Stamp: stamp(t), Text: text}
}
