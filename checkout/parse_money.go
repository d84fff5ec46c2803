package checkout

import (
	"strconv"
	"strings"
)

// ParseMoney reads an amount as a person writes it, in the currency's major
// unit: "19", "19.5" and "19.00" are 1900, 1950 and 1900 usd, "1900" is 1900
// jpy. It is exact: the digits are taken as they stand, without a float in
// between.
//
// Signs, symbols, spaces and separators of thousands are refused, because a
// comma is a decimal point to half of the world: "1,900" could be either. So
// are more decimals than the currency has, nothing at all ("0.00"), and more
// than Stripe's eight digits. Every error is an *InvalidError about field.
func ParseMoney(field, text, currency string) (Money, error) {
	places, example := 2, "19.00"
	if zeroDecimal[currency] {
		places, example = 0, "1900"
	}
	refuse := func(reason string) (Money, error) {
		return Money{}, &InvalidError{Field: field, Reason: reason + " Write it such as " + example + "."}
	}
	whole, part, point := strings.Cut(text, ".")
	switch {
	case !figures(whole) || (point && !figures(part)):
		return refuse("The amount must be in figures alone.")
	case len(part) > places:
		return refuse("The amount has more decimals than its currency.")
	}
	minor := strings.TrimLeft(whole+part+strings.Repeat("0", places-len(part)), "0")
	switch {
	case minor == "":
		return refuse("The amount must be more than nothing.")
	case len(minor) > 8:
		return refuse("The amount is too large.")
	}
	amount, err := strconv.ParseInt(minor, 10, 64)
	return Money{Amount: amount, Currency: currency}, err
}

// figures is true for one or more of the digits 0 to 9, and nothing else.
func figures(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
