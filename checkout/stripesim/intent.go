package stripesim

import "strings"

func createPaymentIntent(tx *tx, p params) (any, *apiError) {
	currency := strings.ToLower(p.text("currency"))
	if err := checkAmount(p.integer("amount"), currency); err != nil {
		return nil, err
	}
	if err := checkCreate(p); err != nil {
		return nil, err
	}
	id := newID("pi")
	pi := &intent{paymentIntent: paymentIntent{
		ID: id, Object: "payment_intent", Amount: p.integer("amount"), CaptureMethod: "automatic_async",
		ClientSecret: id + "_secret_" + random(25), ConfirmationMethod: "automatic", Created: tx.now(), Currency: currency,
		Description: p.optional("description"), Metadata: p.merged(nil),
		PaymentMethodOptions: paymentMethodOptions{Card: cardOptions{RequestThreeDSecure: "automatic"}},
		PaymentMethodTypes:   []string{"card"}, ReceiptEmail: p.optional("receipt_email"),
		StatementDescriptor: p.optional("statement_descriptor"), StatementDescriptorSuffix: p.optional("statement_descriptor_suffix"),
		Status: requiresPaymentMethod, TransferGroup: p.optional("transfer_group"),
	}}
	if p.has("confirmation_method") {
		pi.ConfirmationMethod = p.text("confirmation_method")
	}
	pi.setMethodTypes(p)
	pi.setOptions(p)
	if p.has("payment_method") {
		m, err := tx.findMethod(p.text("payment_method"), "payment_method")
		if err != nil {
			return nil, err
		}
		pi.PaymentMethod, pi.Status = refer(m.ID), requiresConfirmation
		tx.put(m)
	}
	if !p.boolean("confirm") {
		tx.put(pi)
		tx.emit("payment_intent.created", pi.paymentIntent, nil)
		return pi.shown(), nil
	}
	c, err := tx.prepareConfirm(pi, p)
	if err != nil {
		return nil, err
	}
	// The event shows the PaymentIntent as it was before its first confirmation.
	tx.emit("payment_intent.created", pi.paymentIntent, nil)
	return tx.confirm(pi, c)
}

// checkCreate refuses parameters that do not go together.
func checkCreate(p params) *apiError {
	if p.has("payment_method_types") && p.has("automatic_payment_methods") {
		return refuse("", "", "You may only specify one of these parameters: automatic_payment_methods, payment_method_types.")
	}
	if p.boolean("confirm") {
		return nil
	}
	for _, name := range []string{"confirmation_token", "error_on_requires_action", "off_session", "return_url"} {
		if p.has(name) {
			return refuse("", name, "The parameter '%s' cannot be passed when creating a PaymentIntent unless confirm is set to true.", name)
		}
	}
	return nil
}

// setMethodTypes decides between cards only and the automatic methods, which are the default since API version 2023-08-16
// and may redirect the customer.
func (i *intent) setMethodTypes(p params) {
	switch {
	case p.has("automatic_payment_methods"):
		i.AutomaticPaymentMethods = &automaticPaymentMethods{
			Enabled: p.boolean("automatic_payment_methods", "enabled"), AllowRedirects: "always",
		}
		if redirects := p.text("automatic_payment_methods", "allow_redirects"); redirects != "" {
			i.AutomaticPaymentMethods.AllowRedirects = redirects
		}
	case !p.has("payment_method_types"):
		i.AutomaticPaymentMethods = &automaticPaymentMethods{Enabled: true, AllowRedirects: "always"}
	}
	if i.AutomaticPaymentMethods != nil && i.AutomaticPaymentMethods.Enabled {
		i.PaymentMethodConfigDetail = &paymentMethodConfig{ID: "pmc_1LocalStripe000000000000"}
	}
}

// setOptions takes over what create, update and confirm may all change.
func (i *intent) setOptions(p params) {
	if p.has("capture_method") {
		i.CaptureMethod = p.text("capture_method")
	}
	if requested := p.text("payment_method_options", "card", "request_three_d_secure"); requested != "" {
		i.PaymentMethodOptions.Card.RequestThreeDSecure = requested
	}
}

// findIntent returns a copy of the PaymentIntent named in the path.
func (tx *tx) findIntent() (*intent, *apiError) {
	pi, found := tx.get(tx.call.subject).(*intent)
	if !found {
		return nil, missing("payment_intent", "intent", tx.call.subject)
	}
	fresh := *pi
	return &fresh, nil
}

func retrievePaymentIntent(tx *tx, p params) (any, *apiError) {
	pi, err := tx.findIntent()
	if err != nil {
		return nil, err
	}
	if p.has("client_secret") && p.text("client_secret") != pi.ClientSecret {
		return nil, refuse("", "client_secret", "The client_secret provided does not match the client_secret associated with the PaymentIntent.")
	}
	return pi.shown(), nil
}

func updatePaymentIntent(tx *tx, p params) (any, *apiError) {
	pi, err := tx.findIntent()
	if err != nil {
		return nil, err
	}
	if err := tx.checkUpdate(pi, p); err != nil {
		return nil, err
	}
	if p.has("amount") {
		pi.Amount = p.integer("amount")
	}
	if p.has("currency") {
		pi.Currency = strings.ToLower(p.text("currency"))
	}
	for name, field := range map[string]**string{
		"description": &pi.Description, "receipt_email": &pi.ReceiptEmail, "statement_descriptor": &pi.StatementDescriptor,
		"statement_descriptor_suffix": &pi.StatementDescriptorSuffix, "transfer_group": &pi.TransferGroup,
	} {
		if p.at(name) != nil {
			*field = p.optional(name)
		}
	}
	pi.Metadata = p.merged(pi.Metadata)
	if p.has("payment_method_types") {
		pi.AutomaticPaymentMethods, pi.PaymentMethodConfigDetail = nil, nil
	}
	pi.setOptions(p)
	if p.has("payment_method") {
		m, err := tx.findMethod(p.text("payment_method"), "payment_method")
		if err != nil {
			return nil, err
		}
		tx.put(m)
		pi.PaymentMethod, pi.Status, pi.NextAction, pi.Challenge = refer(m.ID), requiresConfirmation, nil, ""
	}
	tx.put(pi)
	return pi.shown(), nil
}

// checkUpdate lets a PaymentIntent that is done, or about to be, change only what has no effect on money.
func (tx *tx) checkUpdate(pi *intent, p params) *apiError {
	if p.has("amount") || p.has("currency") {
		amount, currency := pi.Amount, pi.Currency
		if p.has("amount") {
			amount = p.integer("amount")
		}
		if p.has("currency") {
			currency = strings.ToLower(p.text("currency"))
		}
		if err := checkAmount(amount, currency); err != nil {
			return err
		}
	}
	switch pi.Status {
	case requiresPaymentMethod, requiresConfirmation, requiresAction:
		return nil
	}
	for _, name := range []string{"amount", "currency", "payment_method", "payment_method_types", "payment_method_options", "capture_method"} {
		if p.has(name) {
			return unexpectedState(pi.paymentIntent, "This PaymentIntent's %s could not be updated because it has a status of %s.", name, pi.Status)
		}
	}
	return nil
}

func cancelPaymentIntent(tx *tx, p params) (any, *apiError) {
	pi, err := tx.findIntent()
	if err != nil {
		return nil, err
	}
	switch pi.Status {
	case succeeded, canceled, processing:
		return nil, unexpectedState(pi.paymentIntent, "You cannot cancel this PaymentIntent because it has a status of %s. "+
			"Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, "+
			"requires_confirmation, requires_action, processing.", pi.Status)
	}
	reason := p.optional("cancellation_reason")
	if pi.Status == requiresCapture {
		tx.releaseAuthorization(pi)
	}
	tx.cancel(pi, reason)
	return pi.shown(), nil
}

// cancel ends a PaymentIntent for good: no later confirm, and no customer who passes a challenge, can charge it.
func (tx *tx) cancel(pi *intent, reason *string) {
	now := tx.now()
	pi.Status, pi.CanceledAt, pi.CancellationReason = canceled, &now, reason
	pi.NextAction, pi.Challenge, pi.AmountCapturable = nil, "", 0
	tx.put(pi)
	tx.emit("payment_intent.canceled", pi.paymentIntent, nil)
}

// releaseAuthorization gives back what a manual capture had reserved: the charge counts as refunded in full.
func (tx *tx) releaseAuthorization(pi *intent) {
	ch := *tx.get(pi.LatestCharge.id).(*chargeRecord)
	ch.AmountRefunded, ch.Refunded = ch.Amount, true
	tx.put(&ch)
	tx.emit("charge.refunded", ch.charge, map[string]any{"amount_refunded": 0, "refunded": false})
}

func capturePaymentIntent(tx *tx, p params) (any, *apiError) {
	pi, err := tx.findIntent()
	if err != nil {
		return nil, err
	}
	if pi.Status != requiresCapture {
		return nil, unexpectedState(pi.paymentIntent, "This PaymentIntent could not be captured because it has a status of %s. "+
			"Only a PaymentIntent with one of the following statuses may be captured: requires_capture.", pi.Status)
	}
	amount := pi.AmountCapturable
	if p.has("amount_to_capture") {
		if amount = p.integer("amount_to_capture"); amount > pi.AmountCapturable {
			return nil, refuse("amount_too_large", "amount_to_capture", "The amount_to_capture cannot be greater than the amount capturable.")
		}
	}
	ch := *tx.get(pi.LatestCharge.id).(*chargeRecord)
	ch.Captured, ch.AmountCaptured = true, amount
	if rest := ch.Amount - amount; rest > 0 {
		ch.AmountRefunded = rest
	}
	pi.Metadata = p.merged(pi.Metadata)
	pi.AmountCapturable, pi.AmountReceived, pi.Status = 0, amount, succeeded
	tx.put(&ch)
	tx.put(pi)
	tx.emit("charge.captured", ch.charge, nil)
	tx.emit("payment_intent.succeeded", pi.paymentIntent, nil)
	return pi.shown(), nil
}
