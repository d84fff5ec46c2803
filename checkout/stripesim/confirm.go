package stripesim

import "net/http"

// confirmation is one attempt to pay, its parameters resolved.
type confirmation struct {
	method      *method
	token       *token
	returnURL   string
	useSDK      bool // the browser's script handles a challenge instead of a redirect
	unattended  bool // off_session: nobody is there to pass a challenge
	refuseSteps bool // error_on_requires_action
}

func confirmPaymentIntent(tx *tx, p params) (any, *apiError) {
	pi, err := tx.findIntent()
	if err != nil {
		return nil, err
	}
	switch pi.Status {
	case succeeded:
		return nil, unexpectedState(pi.paymentIntent,
			"You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed.")
	case canceled, processing, requiresCapture:
		return nil, unexpectedState(pi.paymentIntent, "You cannot confirm this PaymentIntent because it has a status of %s. "+
			"Only a PaymentIntent with one of the following statuses may be confirmed: requires_confirmation, requires_action.", pi.Status)
	}
	c, err := tx.prepareConfirm(pi, p)
	if err != nil {
		return nil, err
	}
	if pi.Confirms >= tx.server.config.ConfirmCap {
		reason := "automatic"
		tx.cancel(pi, &reason)
		if tx.server.config.CapRefuses {
			return nil, unexpectedState(pi.paymentIntent, "This PaymentIntent was confirmed too many times and has been canceled.")
		}
		return pi.shown(), nil
	}
	return tx.confirm(pi, c)
}

// prepareConfirm finds out what a confirm is to be paid with, and refuses what cannot be tried at all.
func (tx *tx) prepareConfirm(pi *intent, p params) (confirmation, *apiError) {
	c := confirmation{
		returnURL: p.text("return_url"), useSDK: p.boolean("use_stripe_sdk"),
		unattended: p.boolean("off_session"), refuseSteps: p.boolean("error_on_requires_action"),
	}
	var err *apiError
	switch {
	case p.has("payment_method") && p.has("confirmation_token"):
		return c, refuse("", "", "You may only specify one of these parameters: confirmation_token, payment_method.")
	case p.has("confirmation_token"):
		err = tx.useToken(&c, p)
	case p.has("payment_method") && tx.call.subject != "":
		c.method, err = tx.findMethod(p.text("payment_method"), "payment_method")
	case pi.PaymentMethod.id != "":
		c.method, err = tx.findMethod(pi.PaymentMethod.id, "payment_method")
	case tx.call.subject == "":
		return c, refuse("parameter_missing", "payment_method", "You cannot confirm this PaymentIntent because it's missing a payment method.")
	default:
		return c, unexpectedState(pi.paymentIntent, "You cannot confirm this PaymentIntent because it's missing a payment method. "+
			"You can either update the PaymentIntent with a payment method and then confirm it again, or confirm it again directly "+
			"with a payment method or ConfirmationToken.")
	}
	if err != nil {
		return c, err
	}
	if c.method.Used {
		return c, conflict("", "payment_method", "The provided PaymentMethod was previously used with a PaymentIntent without Customer attachment. "+
			"It may not be used again. To use a PaymentMethod multiple times, you must attach it to a Customer first.")
	}
	if p.has("payment_method_types") {
		pi.AutomaticPaymentMethods, pi.PaymentMethodConfigDetail = nil, nil
	}
	if pi.mayRedirect() && c.returnURL == "" {
		err := refuse("", "", "This PaymentIntent is configured to accept payment methods enabled in your Dashboard. Because some of these "+
			"payment methods might redirect your customer off of your page, you must provide a `return_url`. If you don't want to accept "+
			"redirect-based payment methods, set `automatic_payment_methods[enabled]` to `true` and "+
			"`automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents.")
		if tx.call.subject != "" {
			err.body.PaymentIntent = &pi.paymentIntent
		}
		return c, err
	}
	pi.setOptions(p)
	if p.at("receipt_email") != nil {
		pi.ReceiptEmail = p.optional("receipt_email")
	}
	return c, nil
}

// confirm runs one attempt: a challenge, a charge or a decline. A challenge that was still open is dropped.
func (tx *tx) confirm(pi *intent, c confirmation) (any, *apiError) {
	pi.Confirms++
	pi.NextAction, pi.Challenge, pi.LastPaymentError = nil, "", nil
	pi.PaymentMethod = refer(c.method.ID)
	test := tests[c.method.Test]
	tx.put(c.method)
	if c.token != nil {
		c.token.PaymentIntent = &pi.ID
		tx.put(c.token)
	}
	switch {
	case pi.Authenticated == c.method.ID:
		// The customer passed already, and the caller confirms by hand as confirmation_method says.
	case test.challenges(pi) && (c.unattended || c.refuseSteps):
		return tx.declined(pi, c.method, authenticationRequired)
	case test.challenges(pi):
		tx.challenge(pi, c)
		return pi.shown(), nil
	}
	return tx.attempt(pi, c.method)
}

// attempt sends the payment to the card's network.
func (tx *tx) attempt(pi *intent, m *method) (any, *apiError) {
	test := tests[m.Test]
	switch {
	case test.decline != nil:
		return tx.declined(pi, m, *test.decline)
	case test.fault == faultProcessing:
		tx.process(pi, m)
	default:
		tx.charged(pi, m)
	}
	return pi.shown(), nil
}

func (t testMethod) challenges(pi *intent) bool {
	return t.challenge == challengeAlways ||
		t.challenge == challengeOnRequest && pi.PaymentMethodOptions.Card.RequestThreeDSecure != "automatic"
}

// charged takes the money, or reserves it for a manual capture.
func (tx *tx) charged(pi *intent, m *method) {
	ch := tx.newCharge(pi, m, nil)
	pi.LatestCharge, pi.NextAction, pi.Challenge, pi.Processing = refer(ch.ID), nil, "", nil
	if pi.CaptureMethod == "manual" {
		pi.Status, pi.AmountCapturable = requiresCapture, pi.Amount
	} else {
		pi.Status, pi.AmountReceived = succeeded, pi.Amount
	}
	tx.spend(m)
	tx.put(ch)
	tx.put(pi)
	tx.emit("charge.succeeded", ch.charge, nil)
	if pi.Status == requiresCapture {
		tx.emit("payment_intent.amount_capturable_updated", pi.paymentIntent, nil)
		return
	}
	tx.emit("payment_intent.succeeded", pi.paymentIntent, nil)
	if tests[m.Test].dispute != nil {
		tx.later(tx.server.config.Later, "open dispute", ch.ID, pi.ID)
	}
}

// spend marks a PaymentMethod as used: it has been sent to the network once.
func (tx *tx) spend(m *method) {
	spent := *m
	spent.Used = true
	tx.put(&spent)
}

// declined records the failed charge and answers 402. The PaymentIntent stays, without its payment method, and its
// latest charge is the failed one: a latest charge does not mean paid.
func (tx *tx) declined(pi *intent, m *method, d decline) (any, *apiError) {
	ch := tx.newCharge(pi, m, &d)
	body := errorBody{
		Charge: ch.ID, Code: d.code, DeclineCode: d.reason, DocURL: docURL(d.code), Message: d.message, Param: d.param,
		PaymentMethod: &m.paymentMethod, Type: cardError,
	}
	lasting := body
	pi.LastPaymentError, pi.LatestCharge = &lasting, refer(ch.ID)
	pi.Status, pi.PaymentMethod, pi.NextAction, pi.Challenge, pi.Processing = requiresPaymentMethod, reference{}, nil, "", nil
	tx.spend(m)
	tx.put(ch)
	tx.put(pi)
	tx.emit("charge.failed", ch.charge, nil)
	tx.emit("payment_intent.payment_failed", pi.paymentIntent, nil)
	body.PaymentIntent = &pi.paymentIntent
	return nil, &apiError{status: http.StatusPaymentRequired, body: body, begun: true}
}
