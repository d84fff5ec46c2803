package stripesim

type paymentMethod struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	AllowRedisplay string            `json:"allow_redisplay"`
	BillingDetails billingDetails    `json:"billing_details"`
	Card           methodCard        `json:"card"`
	Created        int64             `json:"created"`
	Customer       null              `json:"customer"`
	Livemode       bool              `json:"livemode"`
	Metadata       map[string]string `json:"metadata"`
	Type           string            `json:"type"`
}

type methodCard struct {
	Brand             string            `json:"brand"`
	Checks            cardChecks        `json:"checks"`
	Country           string            `json:"country"`
	DisplayBrand      string            `json:"display_brand"`
	ExpMonth          int               `json:"exp_month"`
	ExpYear           int               `json:"exp_year"`
	Fingerprint       string            `json:"fingerprint"`
	Funding           string            `json:"funding"`
	GeneratedFrom     null              `json:"generated_from"`
	Last4             string            `json:"last4"`
	Networks          cardNetworks      `json:"networks"`
	ThreeDSecureUsage threeDSecureUsage `json:"three_d_secure_usage"`
	Wallet            null              `json:"wallet"`
}

type cardChecks struct {
	AddressLine1Check      null    `json:"address_line1_check"`
	AddressPostalCodeCheck *string `json:"address_postal_code_check"`
	CVCCheck               string  `json:"cvc_check"`
}

type cardNetworks struct {
	Available []string `json:"available"`
	Preferred null     `json:"preferred"`
}

type threeDSecureUsage struct {
	Supported bool `json:"supported"`
}

// method is a PaymentMethod, the name of the test method it was made from, and whether it was used: without a
// customer a PaymentMethod pays once.
type method struct {
	paymentMethod `json:"shown"`
	Test          string `json:"test"`
	Used          bool   `json:"used"`
}

func (m *method) ident() string    { return m.ID }
func (m *method) kind() string     { return "payment_method" }
func (m *method) createdAt() int64 { return m.Created }

func (m *method) shown() any {
	pm := m.paymentMethod
	return &pm
}

// newMethod makes a fresh PaymentMethod from a test method's name, as Stripe does on each use of one: the id a
// PaymentIntent shows is never the name that was sent.
func (tx *tx) newMethod(name string) *method {
	return &method{Test: name, paymentMethod: paymentMethod{
		ID: newID("pm"), Object: "payment_method", AllowRedisplay: "unspecified", Card: tests[name].card(),
		Created: tx.now(), Metadata: map[string]string{}, Type: "card",
	}}
}

// findMethod returns the PaymentMethod a parameter names: a fresh one for a test method, else the one with this id.
// The answer for an unknown one is 400, not 404, since it is not named in the path.
func (tx *tx) findMethod(name, param string) (*method, *apiError) {
	if _, test := tests[name]; test {
		return tx.newMethod(name), nil
	}
	if m, found := tx.get(name).(*method); found {
		fresh := *m
		return &fresh, nil
	}
	return nil, refuse("resource_missing", param, "No such PaymentMethod: '%s'", name)
}

func retrievePaymentMethod(tx *tx, _ params) (any, *apiError) {
	m, found := tx.get(tx.call.subject).(*method)
	if !found {
		return nil, missing("PaymentMethod", "payment_method", tx.call.subject)
	}
	return m.shown(), nil
}
