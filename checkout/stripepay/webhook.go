package stripepay

import (
	"encoding/json"
	"errors"
	"fmt"
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
// secret, and reads the event. While a secret is rolled, two are active.
//
// An event of another API version than the SDK's is marked as a hint: its
// object may have another shape, so nothing but its ids is used.
func Verify(body []byte, header string, secrets []string, now time.Time) (checkout.Event, error) {
	if err := signed(body, header, secrets, now); err != nil {
		return checkout.Event{}, err
	}
	var event stripe.Event
	if err := json.Unmarshal(body, &event); err != nil || event.Object != "event" || event.Data == nil || printable(event.ID) == "" {
		return checkout.Event{}, ErrEvent
	}
	e := checkout.Event{
		ID: event.ID, Type: printable(string(event.Type)), Live: event.Livemode,
		CreatedAt: time.Unix(event.Created, 0), Hint: event.APIVersion != stripe.APIVersion,
	}
	return e, read(&e, event.Data.Raw)
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

// signedAt reads the time of the signature, which is part of what is signed.
func signedAt(header string) (time.Time, error) {
	for _, part := range strings.Split(header, ",") {
		if text, ok := strings.CutPrefix(part, "t="); ok {
			seconds, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return time.Time{}, ErrSignature
			}
			return time.Unix(seconds, 0), nil
		}
	}
	return time.Time{}, ErrSignature
}

// read fills in the object of the event, as far as the checkout knows it.
func read(e *checkout.Event, raw json.RawMessage) error {
	var kind struct {
		Object string `json:"object"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return ErrEvent
	}
	var err error
	switch kind.Object {
	case "payment_intent":
		err = readIntent(e, raw)
	case "charge":
		var charge stripe.Charge
		if err = json.Unmarshal(raw, &charge); err == nil {
			e.Charge = printable(charge.ID)
			if charge.PaymentIntent != nil {
				e.IntentID = printable(charge.PaymentIntent.ID)
			}
		}
	case "refund":
		var refund stripe.Refund
		if err = json.Unmarshal(raw, &refund); err == nil {
			if refund.Charge != nil {
				e.Charge = printable(refund.Charge.ID)
			}
			if refund.PaymentIntent != nil {
				e.IntentID = printable(refund.PaymentIntent.ID)
			}
		}
	case "dispute":
		err = readDispute(e, raw)
	}
	if err != nil {
		return fmt.Errorf("%w: its %s", ErrEvent, kind.Object)
	}
	return nil
}

func readIntent(e *checkout.Event, raw json.RawMessage) error {
	var pi stripe.PaymentIntent
	if err := json.Unmarshal(raw, &pi); err != nil {
		return err
	}
	said, err := intent(&pi, "")
	if err != nil {
		return err
	}
	e.Intent, e.IntentID = &said, said.ID
	return nil
}

func readDispute(e *checkout.Event, raw json.RawMessage) error {
	var d stripe.Dispute
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	if d.Charge != nil {
		e.Charge = printable(d.Charge.ID)
	}
	if d.PaymentIntent != nil {
		e.IntentID = printable(d.PaymentIntent.ID)
	}
	e.Dispute = &checkout.Dispute{
		ID: printable(d.ID), Charge: e.Charge, Status: printable(string(d.Status)), Reason: printable(string(d.Reason)),
		Money: checkout.Money{Amount: d.Amount, Currency: printable(string(d.Currency))},
	}
	return nil
}
