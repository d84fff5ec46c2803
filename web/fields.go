package web

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"

	"payonce/checkout"
)

// The longest course, and the longest id of a payment method or token at
// Stripe, in bytes (https://docs.stripe.com/upgrades: up to 255 characters).
const (
	maxSlug     = 64
	maxStripeID = 255
)

// maxAmount is Stripe's limit of eight digits.
const maxAmount = 99_999_999

// orderRequest reads POST /orders.
func (s submission) orderRequest(account string) (checkout.OrderRequest, error) {
	course, err := s.text("course", maxSlug)
	return checkout.OrderRequest{Account: account, Key: s.key, Course: course}, err
}

// paymentRequest reads POST /orders/{id}/payments: a payment method or a
// confirmation token, and not both.
func (s submission) paymentRequest(account, order string) (checkout.PaymentRequest, error) {
	r := checkout.PaymentRequest{Account: account, Key: s.key, Order: order}
	_, method := s.fields["payment_method"]
	_, token := s.fields["confirmation_token"]
	var err error
	switch {
	case method && token:
		err = invalid("confirmation_token", "Send payment_method or confirmation_token, and not both.")
	case token:
		r.ConfirmationToken, err = s.text("confirmation_token", maxStripeID)
	case method:
		r.PaymentMethod, err = s.text("payment_method", maxStripeID)
	default:
		err = invalid("payment_method", "Send payment_method, or confirmation_token.")
	}
	return r, err
}

// text reads a required field of 1 to most bytes of text.
func (s submission) text(name string, most int) (string, error) {
	v, ok := s.fields[name]
	switch {
	case !ok:
		return "", invalid(name, "The field is required.")
	case v.number:
		return "", invalid(name, "The field must be text, not a number.")
	case v.text == "":
		return "", invalid(name, "The field is empty.")
	case len(v.text) > most:
		return "", invalid(name, fmt.Sprintf("The field is %d bytes long, and %d is the most.", len(v.text), most))
	case !storable(v.text):
		return "", invalid(name, "The field must be valid UTF-8 without a zero byte.")
	}
	return v.text, nil
}

// amount reads a required number of minor units. 4900, 4900.0 and 4.9e3 are the
// same amount and so the same request; 49.5 is none.
func (s submission) amount(name string) (int64, error) {
	v, ok := s.fields[name]
	switch {
	case !ok:
		return 0, invalid(name, "The field is required.")
	case !s.form && !v.number:
		return 0, invalid(name, "The field must be a number, not text.")
	}
	amount, ok := wholeNumber(v.text)
	if !ok || amount < 1 || amount > maxAmount {
		return 0, invalid(name, fmt.Sprintf("The amount is in minor units: a whole number from 1 to %d.", maxAmount))
	}
	return amount, nil
}

// jsonNumber is the grammar of RFC 8259, section 6, with its exponent apart.
var jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?$`)

// wholeNumber reads a JSON number exactly, without a float in between. ok is
// false unless it is whole and fits.
func wholeNumber(text string) (n int64, ok bool) {
	parts := jsonNumber.FindStringSubmatch(text)
	if parts == nil || len(text) > 64 {
		return 0, false
	}
	if parts[1] != "" {
		// An exponent is cheap to write and dear to expand: 1e999999999.
		if exponent, err := strconv.Atoi(parts[1]); err != nil || exponent < -64 || exponent > 64 {
			return 0, false
		}
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, false
	}
	return exact.Num().Int64(), true
}
