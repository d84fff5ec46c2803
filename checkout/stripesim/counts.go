package stripesim

// Counts is what a test asks to know whether money moved once.
type Counts struct {
	// Requests received, by operation: "POST /v1/payment_intents/{id}/confirm".
	Requests map[string]int `json:"requests"`
	// Confirms received in the log, by PaymentIntent and by idempotency key.
	ConfirmsByPaymentIntent map[string]Confirms `json:"confirms_by_payment_intent"`
	ConfirmsByKey           map[string]Confirms `json:"confirms_by_key"`
	// Charges that succeeded: in all, by metadata.order, by PaymentIntent.
	Charges                int            `json:"charges"`
	ChargesByOrder         map[string]int `json:"charges_by_order"`
	ChargesByPaymentIntent map[string]int `json:"charges_by_payment_intent"`
}

// Confirms counts what became of confirmations.
type Confirms struct {
	Received int `json:"received"`
	Executed int `json:"executed"`
	Replayed int `json:"replayed"`
}

func (c Confirms) plus(r *Request) Confirms {
	c.Received++
	if r.Executed {
		c.Executed++
	}
	if r.Replayed {
		c.Replayed++
	}
	return c
}

const confirmOperation = "POST /v1/payment_intents/{id}/confirm"

// Counts returns the counts over all accounts. Requests and confirms begin with the process or the last full Reset;
// charges are those that the journal holds.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := Counts{
		Requests: map[string]int{}, ConfirmsByPaymentIntent: map[string]Confirms{}, ConfirmsByKey: map[string]Confirms{},
		ChargesByOrder: map[string]int{}, ChargesByPaymentIntent: map[string]int{},
	}
	for operation, n := range s.requests.counts {
		counts.Requests[operation] = n
	}
	for _, r := range s.requests.entries {
		if r.Operation != confirmOperation {
			continue
		}
		counts.ConfirmsByPaymentIntent[r.PaymentIntent] = counts.ConfirmsByPaymentIntent[r.PaymentIntent].plus(r)
		if r.Key != "" {
			counts.ConfirmsByKey[r.Key] = counts.ConfirmsByKey[r.Key].plus(r)
		}
	}
	for _, a := range s.accounts {
		for _, id := range a.order["charge"] {
			ch := a.records[id].(*chargeRecord)
			if !ch.Paid {
				continue
			}
			counts.Charges++
			counts.ChargesByPaymentIntent[ch.PaymentIntent.id]++
			if order := ch.Metadata["order"]; order != "" {
				counts.ChargesByOrder[order]++
			}
		}
	}
	return counts
}
