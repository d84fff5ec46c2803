package view

// Policy is the published idempotency policy, as draft-ietf-httpapi-idempotency-key-header-07 section 2.3 asks of a
// server. All of it comes from the configuration and the error table in force.
type Policy struct {
	Frame      Frame
	Operations []PolicyOperation
	Answers    []PolicyAnswer
	// Retention is how long a completed key is remembered: "72 hours". Of the others, each is left out if empty.
	Retention       string
	Wait            string // how long a duplicate waits for the first answer: "1 second"
	Lease           string // how long a dead owner's key stays claimed: "60 seconds"
	ProviderTimeout string // how long one attempt may talk to Stripe: "15 seconds"
	ResendWindow    string // how long an unknown payment is repeated rather than asked about: "15 minutes"
	OrderExpiry     string // how long an order stays open: "20 hours"
	// CompleterInterval is how often the shop looks for payments that nobody is left to finish: "5 seconds".
	CompleterInterval string
	ActionTimeout     string // how long a bank may wait for its buyer: "15 minutes"
	RefundWindow      string // how long after paying a refund may be asked for: "14 days"
	EventRetention    string // how long Stripe's events are remembered: "45 days"
}

// PolicyOperation is an operation that takes a key.
type PolicyOperation struct {
	Operation string // "POST /orders/{id}/payments"
	Fields    string // what the fingerprint covers: "payment_method, or confirmation_token"
	Shape     string // "local" or "remote"
}

// PolicyAnswer is one row of the table of answers. Its code is also its anchor, and the end of a problem's "type".
type PolicyAnswer struct {
	Code       string // "order_already_paid"; for a success, what it is: "succeeded"
	Status     string // "409", "201"
	Sticks     bool   // whether the answer is recorded under the key and replayed
	SafeNewKey string // "yes", "no", or when
	Do         string // what to do with it, a sentence
}

// answers returns the rows that stick to a key, or those that do not, in the order given.
func (m Policy) answers(stick bool) []PolicyAnswer {
	var answers []PolicyAnswer
	for _, answer := range m.Answers {
		if answer.Sticks == stick {
			answers = append(answers, answer)
		}
	}
	return answers
}

func (m Policy) exclusionFacts() []Fact {
	return given(
		Fact{Label: "A duplicate waits for the first answer up to", Value: m.Wait},
		Fact{Label: "One attempt may talk to Stripe for", Value: m.ProviderTimeout},
		Fact{Label: "A key whose owner died can be taken over after", Value: m.Lease},
		Fact{Label: "What nobody is left to finish is looked for every", Value: m.CompleterInterval},
	)
}

func (m Policy) memoryFacts() []Fact {
	return given(
		Fact{Label: "A completed key is remembered for", Value: m.Retention},
		Fact{Label: "A payment whose outcome is unknown is repeated, rather than asked about, for", Value: m.ResendWindow},
		Fact{Label: "A bank may wait for its buyer for", Value: m.ActionTimeout},
		Fact{Label: "An order can be paid for", Value: m.OrderExpiry},
		Fact{Label: "After paying, a refund may be asked for within", Value: m.RefundWindow},
		Fact{Label: "An event of Stripe’s is remembered for", Value: m.EventRetention},
	)
}

// example is a request, as short as one can be. Not every shop has the order it names.
func (m Policy) example() string {
	return `POST /orders/1042/payments HTTP/1.1
Idempotency-Key: "01JDZ8M4T6QK9V3X7C2N5R0HBE"
Content-Type: application/json

{"payment_method": "pm_card_visa"}`
}
