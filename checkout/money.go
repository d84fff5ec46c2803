package checkout

import (
	"strconv"
	"strings"
)

// Money is an amount in the minor units of a currency: 4900 usd is $49.00,
// 7900 jpy is ¥7,900. There is no float anywhere between the page and Stripe.
type Money struct {
	// Amount is in minor units, as Stripe counts them.
	Amount int64
	// Currency is the lower-case ISO 4217 code, as Stripe spells it.
	Currency string
}

// symbols are the signs that stand before an amount; a currency without one is
// written with its code behind.
var symbols = map[string]string{"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥"}

// zeroDecimal are the currencies of the catalogue without minor units
// (https://docs.stripe.com/currencies#zero-decimal).
var zeroDecimal = map[string]bool{"jpy": true}

// String formats the amount for people: "$9,000.00", "¥7,900", "€59.00".
func (m Money) String() string {
	sign, amount := "", m.Amount
	if amount < 0 {
		sign, amount = "-", -amount
	}
	text := ""
	if zeroDecimal[m.Currency] {
		text = grouped(amount)
	} else {
		text = grouped(amount/100) + "." + strconv.FormatInt(100+amount%100, 10)[1:]
	}
	if symbol, ok := symbols[m.Currency]; ok {
		return sign + symbol + text
	}
	return sign + text + " " + strings.ToUpper(m.Currency)
}

// grouped writes n with a comma between every three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
