package stripesim

// page is Stripe's envelope of a list (https://docs.stripe.com/api/pagination).
type page struct {
	Object  string `json:"object"`
	Data    []any  `json:"data"`
	HasMore bool   `json:"has_more"`
	URL     string `json:"url"`
}

const (
	defaultLimit = 10
	maxLimit     = 100
)

// list answers the records of a kind, newest first. filter, when there is one, makes the test from the parameters.
func list(kind string, filter func(params) func(record) bool) operation {
	return func(tx *tx, p params) (any, *apiError) {
		limit, err := pageLimit(p)
		if err != nil {
			return nil, err
		}
		wanted := func(record) bool { return true }
		if filter != nil {
			wanted = filter(p)
		}
		var all []record
		tx.each(kind, func(r record) bool {
			if p.within("created", r.createdAt()) && wanted(r) {
				all = append(all, r)
			}
			return true
		})
		all, more, err := cut(all, kind, p, limit)
		if err != nil {
			return nil, err
		}
		answer := &page{Object: "list", Data: []any{}, HasMore: more, URL: tx.call.path}
		for _, r := range all {
			answer.Data = append(answer.Data, r.shown())
		}
		return answer, nil
	}
}

func pageLimit(p params) (int, *apiError) {
	if !p.has("limit") {
		return defaultLimit, nil
	}
	limit := p.integer("limit")
	if limit > maxLimit {
		return 0, refuse("parameter_invalid_integer", "limit", "This value must be less than or equal to %d.", maxLimit)
	}
	return int(limit), nil
}

// cut takes one page out of all: after an object, or the one that ends before it.
func cut(all []record, kind string, p params, limit int) ([]record, bool, *apiError) {
	after, before := p.text("starting_after"), p.text("ending_before")
	if after != "" && before != "" {
		return nil, false, refuse("", "", "You may only specify one of these parameters: ending_before, starting_after.")
	}
	at := func(name, id string) (int, *apiError) {
		for i, r := range all {
			if r.ident() == id {
				return i, nil
			}
		}
		return 0, refuse("resource_missing", name, "No such %s: '%s'", kind, id)
	}
	switch {
	case after != "":
		i, err := at("starting_after", after)
		if err != nil {
			return nil, false, err
		}
		all = all[i+1:]
	case before != "":
		i, err := at("ending_before", before)
		if err != nil {
			return nil, false, err
		}
		all = all[:i]
		if len(all) > limit {
			return all[len(all)-limit:], true, nil
		}
	}
	if len(all) > limit {
		return all[:limit], true, nil
	}
	return all, false, nil
}

func chargeOf(p params) func(record) bool {
	pi, group := p.text("payment_intent"), p.text("transfer_group")
	return func(r record) bool {
		ch := r.(*chargeRecord)
		return (pi == "" || ch.PaymentIntent.id == pi) && (group == "" || ch.TransferGroup != nil && *ch.TransferGroup == group)
	}
}

func refundOf(p params) func(record) bool {
	pi, ch := p.text("payment_intent"), p.text("charge")
	return func(r record) bool {
		re := r.(*refundRecord)
		return (pi == "" || re.PaymentIntent.id == pi) && (ch == "" || re.Charge.id == ch)
	}
}

func retrieveCharge(tx *tx, _ params) (any, *apiError) {
	ch, found := tx.get(tx.call.subject).(*chargeRecord)
	if !found {
		return nil, missing("charge", "id", tx.call.subject)
	}
	return ch.shown(), nil
}
