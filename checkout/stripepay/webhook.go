package stripepay

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/webhook"

	"payonce/checkout"
)

// tolerance is how far a delivery's time may be from ours, in either direction.
// Stripe's libraries look at the past only; a signature from the future is as
// good for replaying it later.
const tolerance = 5 * time.Minute

// What Verify refuses. A delivery with any of these proves nothing and changes
// nothing.
var (
	// ErrSignature: no secret signed these bytes.
	ErrSignature = errors.New("the signature is not valid")
	// ErrStale: it was signed too long ago, or in the future.
	ErrStale = errors.New("the signature's time is too far from now")
	// ErrEvent: it is signed, and it is no event that can be read.
	ErrEvent = errors.New("the event cannot be read")
)

// CheckWebhookSecret refuses what is not a webhook secret. With an empty one
// anybody could sign: the SDK accepts it.
func CheckWebhookSecret(secret string) error {
	if !strings.HasPrefix(secret, "whsec_") || len(secret) < len("whsec_")+16 || !graphic(secret) {
		return errors.New("a webhook secret must be one word that begins with whsec_")
	}
	return nil
}

// Verify checks a delivery's signature over its raw body against each active
// secret, and reads the event. While a secret is rolled, two are active. It
// returns ErrSignature, ErrStale or ErrEvent.
//
// An event of another API version than the SDK's is marked as a hint: its
// object may have another shape, so nothing but its ids is read, and whatever
// that shape is, it is no reason to refuse the event.
func Verify(body []byte, header string, secrets []string, now time.Time) (checkout.Event, error) {
	if err := signed(body, header, secrets, now); err != nil {
		return checkout.Event{}, err
	}
	// Not the SDK's own type: that is the shape of one API version.
	var event struct {
		ID         string `json:"id"`
		Object     string `json:"object"`
		Type       string `json:"type"`
		APIVersion string `json:"api_version"`
		Created    int64  `json:"created"`
		Livemode   bool   `json:"livemode"`
		Data       *struct {
			Object json.RawMessage `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil || event.Object != "event" || event.Data == nil || printable(event.ID) == "" {
		return checkout.Event{}, ErrEvent
	}
	e := checkout.Event{
		ID: event.ID, Type: printable(event.Type), Live: event.Livemode,
		CreatedAt: time.Unix(event.Created, 0), Hint: event.APIVersion != stripe.APIVersion,
	}
	return e, read(&e, event.Data.Object)
}

// signed is nil if one of the secrets signed the body, about now.
func signed(body []byte, header string, secrets []string, now time.Time) error {
	at, err := signedAt(header)
	if err != nil {
		return err
	}
	if off := now.Sub(at); off > tolerance || off < -tolerance {
		return ErrStale
	}
	for _, secret := range secrets {
		if CheckWebhookSecret(secret) != nil {
			continue
		}
		if webhook.ValidatePayloadIgnoringTolerance(body, header, secret) == nil {
			return nil
		}
	}
	return ErrSignature
}

// signedAt reads the time of the signature, which is part of what is signed. A
// header with two times is refused: it is not Stripe's, and whoever checks the
// age of the one and the signature of the other lets a captured delivery be
// replayed at any age.
func signedAt(header string) (at time.Time, err error) {
	times := 0
	for _, part := range strings.Split(header, ",") {
		text, ok := strings.CutPrefix(part, "t=")
		if !ok {
			continue
		}
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return time.Time{}, ErrSignature
		}
		at, times = time.Unix(seconds, 0), times+1
	}
	if times != 1 {
		return time.Time{}, ErrSignature
	}
	return at, nil
}

// read fills in what the event is about, as far as the checkout knows it. Of
// most objects that is their ids: what they say may be old, and is asked for.
// Only a PaymentIntent of the SDK's version is read whole, since it may tell of
// a success.
func read(e *checkout.Event, raw json.RawMessage) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil && !e.Hint {
		return ErrEvent
	}
	switch text(object["object"]) {
	case "payment_intent":
		e.IntentID = text(object["id"])
		if e.Hint {
			return nil
		}
		return readIntent(e, raw)
	case "charge":
		e.Charge, e.IntentID = text(object["id"]), idOf(object["payment_intent"])
	case "refund":
		e.Charge, e.IntentID = idOf(object["charge"]), idOf(object["payment_intent"])
	case "dispute":
		e.DisputeID = text(object["id"])
	}
	return nil
}

func readIntent(e *checkout.Event, raw json.RawMessage) error {
	var pi stripe.PaymentIntent
	if err := json.Unmarshal(raw, &pi); err != nil {
		return ErrEvent
	}
	said, err := intent(&pi, "")
	if err != nil {
		return ErrEvent
	}
	e.Intent = &said
	return nil
}

// text gives the JSON string, or nothing if it is none.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return printable(s)
}

// idOf gives the id of an object that stands there whole, or as its id.
func idOf(raw json.RawMessage) string {
	if id := text(raw); id != "" {
		return id
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return ""
	}
	return text(object["id"])
}
