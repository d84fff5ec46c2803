package stripesim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxAmount is the largest amount Stripe takes: eight digits (https://docs.stripe.com/currencies).
const maxAmount = 99_999_999

// currencies are the codes Stripe can present a charge in.
var currencies = strings.Fields(`
	usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf clp cny
	cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl hrk htg huf idr ils inr isk jmd
	jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mro mur mvr mwk mxn myr mzn nad
	ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl thb
	tjs tnd top try ttd twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xof xpf yer zar zmw`)

// zeroDecimal are the currencies whose smallest unit is the whole one.
var zeroDecimal = strings.Fields("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf")

// threeDecimal are the currencies with a thousandth, whose last digit must be 0.
var threeDecimal = strings.Fields("bhd jod kwd omr tnd")

// wholeUnits are without a smaller unit in practice, but sent with two decimals that must be 00.
var wholeUnits = strings.Fields("isk ugx")

// minimums are the smallest charges by settlement currency, in minor units. What is presented in another currency is
// converted by Stripe; here only the lower bound of 1 applies to it.
var minimums = map[string]int64{
	"usd": 50, "aed": 200, "aud": 50, "bgn": 100, "brl": 50, "cad": 50, "chf": 50, "czk": 1500, "dkk": 250, "eur": 50,
	"gbp": 30, "hkd": 400, "huf": 17500, "inr": 50, "jpy": 50, "mxn": 1000, "myr": 200, "nok": 300, "nzd": 50, "pln": 200,
	"ron": 200, "sek": 300, "sgd": 50, "thb": 1000,
}

// checkAmount refuses what Stripe refuses to charge. The currency is in lower case.
func checkAmount(amount int64, currency string) *apiError {
	switch {
	case !slices.Contains(currencies, currency):
		return refuse("", "currency", "Invalid currency: %s. Stripe currently supports these currencies: %s",
			currency, strings.Join(currencies, ", "))
	case amount > maxAmount:
		return refuse("amount_too_large", "amount", "Amount must be no more than %s", format(maxAmount, currency))
	case amount < minimums[currency]:
		return refuse("amount_too_small", "amount", "Amount must be at least %s", format(minimums[currency], currency))
	case slices.Contains(threeDecimal, currency) && amount%10 != 0:
		return refuse("", "amount", "Amount in %s must end in 0: this currency has three decimals, of which two are charged", currency)
	case slices.Contains(wholeUnits, currency) && amount%100 != 0:
		return refuse("", "amount", "Amount in %s must end in 00: fractions cannot be charged in this currency", currency)
	}
	return nil
}

// format writes an amount for a message: "$0.50 usd", "¥50 jpy", "5.00 pln".
func format(amount int64, currency string) string {
	digits := 2
	if slices.Contains(zeroDecimal, currency) {
		digits = 0
	} else if slices.Contains(threeDecimal, currency) {
		digits = 3
	}
	text := strconv.FormatInt(amount, 10)
	if digits > 0 {
		text = fmt.Sprintf("%0*d", digits+1, amount)
		text = text[:len(text)-digits] + "." + text[len(text)-digits:]
	}
	symbol := map[string]string{"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥"}[currency]
	return symbol + text + " " + currency
}
