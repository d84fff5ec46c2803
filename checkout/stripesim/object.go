package stripesim

import "encoding/json"

// null is a field that is always null here: the object has it, and nothing the local Stripe imitates sets it.
type null struct{}

func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func (*null) UnmarshalJSON([]byte) error { return nil }

// reference is a field that holds another object: its id, or the object itself where the caller asked to expand it.
type reference struct {
	id       string
	expanded any
}

func refer(id string) reference { return reference{id: id} }

// MarshalJSON writes null, the id, or the expanded object.
func (r reference) MarshalJSON() ([]byte, error) {
	switch {
	case r.expanded != nil:
		return json.Marshal(r.expanded)
	case r.id == "":
		return []byte("null"), nil
	}
	return json.Marshal(r.id)
}

// UnmarshalJSON reads what MarshalJSON wrote without expansion: only ids are ever stored.
func (r *reference) UnmarshalJSON(data []byte) error {
	var id *string
	if err := json.Unmarshal(data, &id); err != nil {
		return err
	}
	if id != nil {
		r.id = *id
	}
	return nil
}

// record is what the local Stripe keeps of one object: the object as Stripe shows it, and what Stripe knows besides.
// Records are values that are never changed in place: a transaction puts a new one.
type record interface {
	ident() string
	kind() string
	createdAt() int64
	// shown is the object as the API answers it, as a pointer to a copy, so that expanding it changes nothing stored.
	shown() any
}

// blank returns an empty record of a kind, for the journal to be read into; nil for a kind of another release.
func blank(kind string) record {
	switch kind {
	case "payment_intent":
		return &intent{}
	case "charge":
		return &chargeRecord{}
	case "payment_method":
		return &method{}
	case "refund":
		return &refundRecord{}
	case "confirmation_token":
		return &token{}
	case "event":
		return &eventRecord{}
	case "dispute":
		return &disputeRecord{}
	case "webhook_endpoint":
		return &endpointRecord{}
	case "delivery":
		return &delivery{}
	case "job":
		return &job{}
	}
	return nil
}

type address struct {
	City       null `json:"city"`
	Country    null `json:"country"`
	Line1      null `json:"line1"`
	Line2      null `json:"line2"`
	PostalCode null `json:"postal_code"`
	State      null `json:"state"`
}

type billingDetails struct {
	Address address `json:"address"`
	Email   null    `json:"email"`
	Name    null    `json:"name"`
	Phone   null    `json:"phone"`
}
