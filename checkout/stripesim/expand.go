package stripesim

import (
	"slices"
	"strings"
)

// maxExpansion is how deep Stripe expands (https://docs.stripe.com/expand).
const maxExpansion = 4

// expand replaces ids inside a shown object by the objects themselves. What cannot be expanded is 400.
func (tx *tx) expand(shown any, paths []string) (any, *apiError) {
	for _, path := range paths {
		names := strings.Split(path, ".")
		if len(names) > maxExpansion {
			return nil, refuse("", "expand", "You cannot expand more than %d levels of a property (%s).", maxExpansion, path)
		}
		if err := tx.expandPath(shown, names, path); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

func (tx *tx) expandPath(shown any, names []string, path string) *apiError {
	if len(names) == 0 {
		return nil
	}
	if list, ok := shown.(*page); ok {
		if names[0] != "data" || len(names) == 1 {
			return cannotExpand(path)
		}
		for _, element := range list.Data {
			if err := tx.expandPath(element, names[1:], path); err != nil {
				return err
			}
		}
		return nil
	}
	if ch, ok := shown.(*charge); ok && names[0] == "refunds" {
		ch.Refunds = tx.refundsOf(ch.ID)
		return tx.expandPath(ch.Refunds, names[1:], path)
	}
	field := referenceIn(shown, names[0])
	if field == nil {
		if slices.Contains(nullReferences, names[0]) {
			return nil
		}
		return cannotExpand(path)
	}
	if field.id == "" {
		return nil
	}
	if field.expanded == nil {
		field.expanded = tx.get(field.id).shown()
	}
	return tx.expandPath(field.expanded, names[1:], path)
}

// nullReferences are fields that can be expanded at Stripe and are always null here.
var nullReferences = []string{
	"application", "balance_transaction", "customer", "invoice", "on_behalf_of", "review", "source_transfer", "source_transfer_reversal",
	"transfer_reversal",
}

// refundsOf is the list of a charge's refunds, which the charge shows only when it is expanded.
func (tx *tx) refundsOf(id string) *page {
	refunds := &page{Object: "list", Data: []any{}, URL: "/v1/charges/" + id + "/refunds"}
	tx.each("refund", func(r record) bool {
		if re := r.(*refundRecord); re.Charge.id == id {
			refunds.Data = append(refunds.Data, re.shown())
		}
		return len(refunds.Data) < defaultLimit
	})
	return refunds
}

// referenceIn returns the field of a shown object that can be expanded under a name.
func referenceIn(shown any, name string) *reference {
	switch o := shown.(type) {
	case *paymentIntent:
		switch name {
		case "latest_charge":
			return &o.LatestCharge
		case "payment_method":
			return &o.PaymentMethod
		}
	case *charge:
		if name == "payment_intent" {
			return &o.PaymentIntent
		}
	case *refund:
		switch name {
		case "charge":
			return &o.Charge
		case "payment_intent":
			return &o.PaymentIntent
		}
	}
	return nil
}

func cannotExpand(path string) *apiError {
	return refuse("", "expand", "This property cannot be expanded (%s).", path)
}
