package stripesim

import (
	"slices"
	"time"
)

type webhookEndpoint struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	APIVersion    *string           `json:"api_version"`
	Application   null              `json:"application"`
	Created       int64             `json:"created"`
	Description   *string           `json:"description"`
	EnabledEvents []string          `json:"enabled_events"`
	Livemode      bool              `json:"livemode"`
	Metadata      map[string]string `json:"metadata"`
	Secret        string            `json:"secret,omitempty"` // in the answer to the creation, and nowhere else
	Status        string            `json:"status"`
	URL           string            `json:"url"`
}

// endpointRecord is a webhook endpoint and the secrets that sign what it gets.
type endpointRecord struct {
	webhookEndpoint `json:"shown"`
	Secrets         []signingSecret `json:"secrets"`
}

// signingSecret is one secret, valid for ever or until it expires after a rotation.
type signingSecret struct {
	Secret  string     `json:"secret"`
	Expires *time.Time `json:"expires,omitempty"`
}

func (e *endpointRecord) ident() string    { return e.ID }
func (e *endpointRecord) kind() string     { return "webhook_endpoint" }
func (e *endpointRecord) createdAt() int64 { return e.Created }

func (e *endpointRecord) shown() any {
	we := e.webhookEndpoint
	return &we
}

// active returns the secrets that sign now: while a rotation is under way, the old one and the new one.
func (e *endpointRecord) active(now time.Time) []string {
	var secrets []string
	for _, s := range e.Secrets {
		if s.Expires == nil || now.Before(*s.Expires) {
			secrets = append(secrets, s.Secret)
		}
	}
	return secrets
}

// wants tells whether the endpoint is to get events of a type.
func (e *endpointRecord) wants(kind string) bool {
	return e.Status == "enabled" && slices.ContainsFunc(e.EnabledEvents, func(wanted string) bool { return wanted == "*" || wanted == kind })
}

func endpointCreateParams() []param {
	return expandable(append(unimitatedParams("connect"),
		param{name: "api_version", kind: choice, choices: []string{APIVersion}},
		param{name: "description", kind: text, clears: true, max: 5000},
		param{name: "enabled_events", kind: texts, required: true},
		param{name: "metadata", kind: metadata},
		param{name: "url", kind: link, required: true},
	)...)
}

func endpointUpdateParams() []param {
	return expandable(
		param{name: "description", kind: text, clears: true, max: 5000},
		param{name: "disabled", kind: boolean},
		param{name: "enabled_events", kind: texts},
		param{name: "metadata", kind: metadata},
		param{name: "url", kind: link},
	)
}

func createEndpoint(tx *tx, p params) (any, *apiError) {
	events := p.texts("enabled_events")
	if len(events) == 0 {
		return nil, refuse("parameter_invalid_empty", "enabled_events", "An endpoint needs at least one event.")
	}
	e := &endpointRecord{
		webhookEndpoint: webhookEndpoint{
			ID: newID("we"), Object: "webhook_endpoint", APIVersion: p.optional("api_version"), Created: tx.now(),
			Description: p.optional("description"), EnabledEvents: events, Metadata: p.merged(nil), Status: "enabled", URL: p.text("url"),
		},
		Secrets: []signingSecret{{Secret: newSecret()}},
	}
	tx.put(e)
	answer := e.webhookEndpoint
	answer.Secret = e.Secrets[0].Secret
	return &answer, nil
}

func newSecret() string { return "whsec_" + random(32) }

func (tx *tx) findEndpoint() (*endpointRecord, *apiError) {
	e, found := tx.get(tx.call.subject).(*endpointRecord)
	if !found {
		return nil, missing("webhook endpoint", "webhook_endpoint", tx.call.subject)
	}
	fresh := *e
	return &fresh, nil
}

func retrieveEndpoint(tx *tx, _ params) (any, *apiError) {
	e, err := tx.findEndpoint()
	if err != nil {
		return nil, err
	}
	return e.shown(), nil
}

func updateEndpoint(tx *tx, p params) (any, *apiError) {
	e, err := tx.findEndpoint()
	if err != nil {
		return nil, err
	}
	if p.at("description") != nil {
		e.Description = p.optional("description")
	}
	if events := p.texts("enabled_events"); len(events) > 0 {
		e.EnabledEvents = events
	}
	if p.has("url") {
		e.URL = p.text("url")
	}
	if p.has("disabled") {
		e.Status = map[bool]string{true: "disabled", false: "enabled"}[p.boolean("disabled")]
	}
	e.Metadata = p.merged(e.Metadata)
	tx.put(e)
	return e.shown(), nil
}

// deletedObject is what Stripe answers to a DELETE.
type deletedObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// deleteEndpoint also ends the deliveries that still wait for the endpoint.
func deleteEndpoint(tx *tx, _ params) (any, *apiError) {
	e, err := tx.findEndpoint()
	if err != nil {
		return nil, err
	}
	tx.remove(e.ID)
	tx.each("delivery", func(r record) bool {
		if r.(*delivery).Endpoint == e.ID {
			tx.remove(r.ident())
		}
		return true
	})
	return &deletedObject{ID: e.ID, Object: "webhook_endpoint", Deleted: true}, nil
}

// RollSecret gives a webhook endpoint a new signing secret and returns it. The old ones stay valid for as long as
// overlap says, and until then each delivery carries a signature by every one; Stripe's limit is a day
// (https://docs.stripe.com/webhooks#roll-endpoint-secrets). It returns ErrNotFound.
func (s *Server) RollSecret(endpoint string, overlap time.Duration) (string, error) {
	a, _ := s.find(endpoint)
	if a == nil {
		return "", ErrNotFound
	}
	secret := newSecret()
	found := false
	err := s.transactWithoutCall(a, "", func(tx *tx) {
		old, ok := tx.get(endpoint).(*endpointRecord)
		if !ok {
			return
		}
		found = true
		e := *old
		end := s.now().Add(overlap)
		e.Secrets = nil
		for _, kept := range old.Secrets {
			if kept.Expires == nil || kept.Expires.After(end) {
				kept.Expires = &end
			}
			e.Secrets = append(e.Secrets, kept)
		}
		e.Secrets = append(e.Secrets, signingSecret{Secret: secret})
		tx.put(&e)
	})
	if err == nil && !found {
		err = ErrNotFound
	}
	return secret, err
}
