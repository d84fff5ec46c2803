package stripesim

// tokenLife is how long a confirmation token may be used.
const tokenLife = 12 * 60 * 60

type confirmationToken struct {
	ID                   string                `json:"id"`
	Object               string                `json:"object"`
	Created              int64                 `json:"created"`
	ExpiresAt            int64                 `json:"expires_at"`
	Livemode             bool                  `json:"livemode"`
	MandateData          null                  `json:"mandate_data"`
	PaymentIntent        *string               `json:"payment_intent"`
	PaymentMethodOptions null                  `json:"payment_method_options"`
	PaymentMethodPreview *paymentMethodPreview `json:"payment_method_preview"`
	ReturnURL            *string               `json:"return_url"`
	SetupFutureUsage     null                  `json:"setup_future_usage"`
	SetupIntent          null                  `json:"setup_intent"`
	Shipping             null                  `json:"shipping"`
	UseStripeSDK         bool                  `json:"use_stripe_sdk"`
}

type paymentMethodPreview struct {
	AllowRedisplay string         `json:"allow_redisplay"`
	BillingDetails billingDetails `json:"billing_details"`
	Card           methodCard     `json:"card"`
	Customer       null           `json:"customer"`
	Type           string         `json:"type"`
}

// token is a ConfirmationToken and the name of the test method in it. It was used once its payment_intent is set.
type token struct {
	confirmationToken `json:"shown"`
	Test              string `json:"test"`
}

func (t *token) ident() string    { return t.ID }
func (t *token) kind() string     { return "confirmation_token" }
func (t *token) createdAt() int64 { return t.Created }

func (t *token) shown() any {
	ct := t.confirmationToken
	return &ct
}

func tokenCreateParams() []param {
	return expandable(append(unimitatedParams("payment_method_data", "setup_future_usage", "shipping"),
		param{name: "payment_method", kind: text, required: true},
		param{name: "return_url", kind: link},
	)...)
}

// createConfirmationToken does on the server what stripe.createConfirmationToken does in a browser.
func createConfirmationToken(tx *tx, p params) (any, *apiError) {
	m, err := tx.findMethod(p.text("payment_method"), "payment_method")
	if err != nil {
		return nil, err
	}
	t := &token{Test: m.Test, confirmationToken: confirmationToken{
		ID: newID("ctoken"), Object: "confirmation_token", Created: tx.now(), ExpiresAt: tx.now() + tokenLife,
		PaymentMethodPreview: &paymentMethodPreview{AllowRedisplay: "unspecified", Card: m.Card, Type: "card"},
		ReturnURL:            p.optional("return_url"), UseStripeSDK: true,
	}}
	tx.put(t)
	return t.shown(), nil
}

func retrieveConfirmationToken(tx *tx, _ params) (any, *apiError) {
	t, found := tx.get(tx.call.subject).(*token)
	if !found {
		return nil, missing("confirmation_token", "confirmation_token", tx.call.subject)
	}
	return t.shown(), nil
}

// useToken takes from a confirmation token what the request does not say itself.
func (tx *tx) useToken(c *confirmation, p params) *apiError {
	id := p.text("confirmation_token")
	stored, found := tx.get(id).(*token)
	switch {
	case !found:
		return refuse("resource_missing", "confirmation_token", "No such confirmation_token: '%s'", id)
	case stored.PaymentIntent != nil:
		return conflict("", "confirmation_token", "The provided ConfirmationToken was already used with %s. "+
			"It may not be used again: create a new one.", *stored.PaymentIntent)
	case tx.now() >= stored.ExpiresAt:
		return refuse("", "confirmation_token", "The provided ConfirmationToken has expired.")
	}
	t := *stored
	c.token, c.method = &t, tx.newMethod(t.Test)
	if c.returnURL == "" && t.ReturnURL != nil {
		c.returnURL = *t.ReturnURL
	}
	if !p.has("use_stripe_sdk") {
		c.useSDK = t.UseStripeSDK
	}
	return nil
}
