package stripesim

import (
	"net/http"
	"net/url"
)

// challenge waits for the customer to prove who they are, on a page or in the browser's script.
func (tx *tx) challenge(pi *intent, c confirmation) {
	pi.Status, pi.LatestCharge, pi.Challenge, pi.ReturnURL = requiresAction, reference{}, newID("payatt"), c.returnURL
	page := tx.call.base + "/3d_secure/" + pi.ID + "?source=" + pi.Challenge
	if c.useSDK || c.returnURL == "" {
		pi.NextAction = &nextAction{Type: "use_stripe_sdk", UseStripeSDK: &useStripeSDK{
			Source: pi.Challenge, StripeJS: page, Type: "three_d_secure_redirect",
		}}
	} else {
		pi.NextAction = &nextAction{Type: "redirect_to_url", RedirectToURL: &redirectToURL{ReturnURL: c.returnURL, URL: page}}
	}
	tx.put(pi)
	tx.emit("payment_intent.requires_action", pi.paymentIntent, nil)
}

// passChallenge goes on with the payment. With confirmation_method=manual the caller has to confirm once more.
func (tx *tx) passChallenge(pi *intent) {
	m := tx.get(pi.PaymentMethod.id).(*method)
	pi.Authenticated, pi.NextAction, pi.Challenge = m.ID, nil, ""
	if pi.ConfirmationMethod == "manual" {
		pi.Status = requiresConfirmation
		tx.put(pi)
		return
	}
	_, _ = tx.attempt(pi, m) // a decline is in the PaymentIntent; nobody waits for an answer
}

// failChallenge ends the attempt without a charge.
func (tx *tx) failChallenge(pi *intent) {
	m := tx.get(pi.PaymentMethod.id).(*method)
	const code = "payment_intent_authentication_failure"
	pi.LastPaymentError = &errorBody{
		Code: code, DocURL: docURL(code), PaymentMethod: &m.paymentMethod, Type: invalidRequest,
		Message: "The provided PaymentMethod has failed authentication. You can provide payment_method_data or a new PaymentMethod to attempt to fulfill this PaymentIntent again.",
	}
	pi.Status, pi.PaymentMethod, pi.NextAction, pi.Challenge = requiresPaymentMethod, reference{}, nil, ""
	tx.put(pi)
	tx.emit("payment_intent.payment_failed", pi.paymentIntent, nil)
}

func passedChallenge() *threeDSecureCheck {
	return &threeDSecureCheck{
		AuthenticationFlow: "challenge", ElectronicCommerceIndicator: "05", Result: "authenticated", TransactionID: random(36), Version: "2.2.0",
	}
}

// process leaves a payment undecided for a while.
func (tx *tx) process(pi *intent, m *method) {
	pi.Status, pi.LatestCharge, pi.Processing = processing, reference{}, &processingDetails{Type: "card"}
	tx.spend(m)
	tx.put(pi)
	tx.emit("payment_intent.processing", pi.paymentIntent, nil)
	tx.later(tx.server.config.Later, "settle payment", pi.ID, pi.ID)
}

func (tx *tx) settleProcessing(id string) {
	old, found := tx.get(id).(*intent)
	if !found || old.Status != processing {
		return
	}
	pi := *old
	tx.charged(&pi, tx.get(pi.PaymentMethod.id).(*method))
}

// pages registers what a person opens in a browser.
func (s *Server) pages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.about)
	mux.HandleFunc("GET /receipts/{id}", s.receiptPage)
	mux.HandleFunc("GET /3d_secure/{id}", s.challengePage)
	mux.HandleFunc("POST /3d_secure/{id}", s.answerChallenge)
}

// find returns a record of whatever account: pages have no secret key, only ids that nobody guesses.
func (s *Server) find(id string) (*account, record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		if r, found := a.records[id]; found {
			return a, r
		}
	}
	return nil, nil
}

func (s *Server) challengePage(w http.ResponseWriter, r *http.Request) {
	_, found := s.find(r.PathValue("id"))
	pi, _ := found.(*intent)
	switch {
	case pi == nil:
		showPage(w, http.StatusNotFound, pageView{Title: "No such payment", Text: "The local Stripe does not know this payment."})
	case pi.Challenge == "" || pi.Challenge != r.FormValue("source"):
		showPage(w, http.StatusGone, pageView{Title: "Nothing to confirm", Text: "This payment does not wait for your bank any more.", Back: pi.ReturnURL})
	default:
		showPage(w, http.StatusOK, pageView{
			Title: "3-D Secure", Text: "Your bank asks whether it is you who pays " + format(pi.Amount, pi.Currency) + ". This is the local Stripe: nobody is charged.",
			Action: r.URL.Path, Source: pi.Challenge,
		})
	}
}

// answerChallenge is the customer's answer to the bank. The second of two answers finds nothing to answer and is sent
// back to the shop like the first: what happened is in the PaymentIntent, not in the way back.
func (s *Server) answerChallenge(w http.ResponseWriter, r *http.Request) {
	id, source, outcome := r.PathValue("id"), r.FormValue("source"), r.FormValue("outcome")
	if outcome != "succeeded" && outcome != "failed" {
		showPage(w, http.StatusBadRequest, pageView{Title: "Not understood", Text: "The outcome must be succeeded or failed."})
		return
	}
	pi, err := s.completeChallenge(id, source, outcome == "succeeded", "http://"+r.Host)
	switch {
	case err != nil:
		showPage(w, http.StatusServiceUnavailable, pageView{Title: "Busy", Text: "The payment is being worked on. Go back and try again."})
	case pi == nil:
		showPage(w, http.StatusNotFound, pageView{Title: "No such payment", Text: "The local Stripe does not know this payment."})
	case pi.ReturnURL == "":
		showPage(w, http.StatusOK, pageView{Title: "Done", Text: "You can close this page: the payment is " + pi.Status + "."})
	default:
		http.Redirect(w, r, returnAddress(pi), http.StatusSeeOther)
	}
}

// completeChallenge passes or fails the challenge, if it is still the open one, and returns the PaymentIntent as it then is.
func (s *Server) completeChallenge(id, source string, passes bool, host string) (*intent, *apiError) {
	a, _ := s.find(id)
	if a == nil {
		return nil, nil
	}
	base := s.config.URL
	if base == "" {
		base = host
	}
	var after *intent
	err := s.change(a, id, base, func(tx *tx) {
		old, found := tx.get(id).(*intent)
		if !found {
			return
		}
		pi := *old
		after = &pi
		switch {
		case pi.Status != requiresAction || pi.Challenge == "" || source != "" && source != pi.Challenge:
		case passes:
			tx.passChallenge(&pi)
		default:
			tx.failChallenge(&pi)
		}
	})
	return after, err
}

// returnAddress keeps the return URL's own parameters and adds Stripe's. None of them proves anything.
func returnAddress(pi *intent) string {
	u, err := url.Parse(pi.ReturnURL)
	if err != nil {
		return pi.ReturnURL
	}
	q := u.Query()
	q.Set("payment_intent", pi.ID)
	q.Set("payment_intent_client_secret", pi.ClientSecret)
	q.Set("redirect_status", "failed")
	if pi.Status == succeeded || pi.Status == requiresCapture || pi.Status == requiresConfirmation {
		q.Set("redirect_status", "succeeded")
	}
	u.RawQuery = q.Encode()
	return u.String()
}
