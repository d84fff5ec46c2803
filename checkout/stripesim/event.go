package stripesim

import (
	"encoding/json"
	"slices"
	"strings"
)

type event struct {
	ID              string        `json:"id"`
	Object          string        `json:"object"`
	APIVersion      string        `json:"api_version"`
	Created         int64         `json:"created"`
	Data            eventData     `json:"data"`
	Livemode        bool          `json:"livemode"`
	PendingWebhooks int           `json:"pending_webhooks"`
	Request         *eventRequest `json:"request"`
	Type            string        `json:"type"`
}

// eventData is the object as it was at that moment; it does not change when the object does.
type eventData struct {
	Object             json.RawMessage `json:"object"`
	PreviousAttributes map[string]any  `json:"previous_attributes,omitempty"`
}

type eventRequest struct {
	ID             *string `json:"id"`
	IdempotencyKey *string `json:"idempotency_key"`
}

type eventRecord struct {
	event `json:"shown"`
}

func (e *eventRecord) ident() string    { return e.ID }
func (e *eventRecord) kind() string     { return "event" }
func (e *eventRecord) createdAt() int64 { return e.Created }

func (e *eventRecord) shown() any {
	ev := e.event
	return &ev
}

// emit records that something happened to an object. The order of the calls is the order in which Stripe lists them.
// It returns the event's id.
func (tx *tx) emit(kind string, shown any, previous map[string]any) string {
	snapshot, err := json.Marshal(shown)
	if err != nil {
		panic("stripesim: rendering an event: " + err.Error()) // our own types: cannot happen
	}
	e := &eventRecord{event: event{
		ID: newID("evt"), Object: "event", APIVersion: APIVersion, Created: tx.now(),
		Data: eventData{Object: snapshot, PreviousAttributes: previous}, Type: kind,
	}}
	if tx.call.id != "" {
		e.Request = &eventRequest{ID: &tx.call.id}
		if tx.call.key != "" {
			e.Request.IdempotencyKey = &tx.call.key
		}
	}
	e.PendingWebhooks = tx.dispatch(e)
	tx.put(e)
	return e.ID
}

func eventOf(p params) func(record) bool {
	kinds := p.texts("types")
	if p.has("type") {
		kinds = append(kinds, p.text("type"))
	}
	return func(r record) bool {
		return len(kinds) == 0 || slices.ContainsFunc(kinds, func(kind string) bool { return matchKind(kind, r.(*eventRecord).Type) })
	}
}

// matchKind compares an event's type with a wanted one, in which the end may be a star: charge.*.
func matchKind(wanted, kind string) bool {
	if prefix, star := strings.CutSuffix(wanted, "*"); star {
		return strings.HasPrefix(kind, prefix)
	}
	return wanted == kind
}

func retrieveEvent(tx *tx, _ params) (any, *apiError) {
	e, found := tx.get(tx.call.subject).(*eventRecord)
	if !found {
		return nil, missing("event", "id", tx.call.subject)
	}
	return e.shown(), nil
}
