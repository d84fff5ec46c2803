package view

const (
	notByThis = "Not charged by this request"
	notKnown  = "Not known yet"
	// nothingBack is said of a refund.
	nothingBack = "Nothing given back by this request"
)

// problemWords are the words for every code of the API. Where they name no amount, the request was refused before its
// order was read: there is none to name.
var problemWords = map[string]Words{
	"key_missing": {
		NotCharged, notByThis, "This page sent no key.",
		"Every order, payment and refund carries a key, so that it is made once only. Open the page again and press the button there. Nothing was stored.",
	},
	"key_malformed": {
		NotCharged, notByThis, "This page sent a key that cannot be read.",
		"A key is 1 to 255 printable characters, and is sent once. Open the page again and press the button there. Nothing was stored.",
	},
	"invalid_request": {
		NotCharged, notByThis, "Something in this request is not right.",
		"Nothing was stored and nothing was sent to Stripe. Go back, choose again, and send it once more.",
	},
	"no_session": {
		NotCharged, notByThis, "We do not know who you are yet.",
		"This browser sent no session, so we cannot tell whose order this is. Open the shop once, then come back. If you block cookies for this site, allow them: the session is one cookie and nothing else.",
	},
	"payment_not_made": {
		NotCharged, "Not charged", "The payment was not made.",
		"That attempt was canceled at Stripe, so it cannot be charged later either. You can pay now.",
	},
	"cross_site": {
		NotCharged, notByThis, "This request came from another site.",
		"Only the shop’s own pages may order and pay. Nothing was stored and nothing was sent to Stripe.",
	},
	"not_found": {
		NotCharged, notByThis, "There is no such page.",
		"Nothing of yours is at this address. If it belongs to another customer, or to you before you started over, this browser may not see it.",
	},
	"method_not_allowed": {
		NotCharged, notByThis, "This address does not take that.",
		"Nothing was stored and nothing was sent to Stripe.",
	},
	"request_in_progress": {
		NotKnownYet, notKnown, "This payment is already on its way. Do not pay again.",
		"The first copy of this request is still being carried out. Its order shows the answer in a few seconds.",
	},
	"claim_contended": {
		NotKnownYet, notKnown, "Several copies of this request arrived at once.",
		"One of them is being carried out. Its order shows the answer in a few seconds. Do not pay again.",
	},
	"payment_in_progress": {
		NotKnownYet, notKnown, "A payment for this order is already on its way. Do not pay again.",
		"It came from another tab or an earlier press of Pay. This one was refused before it reached your card.",
	},
	"order_already_paid": {
		ChargedOnce, "Charged once, earlier. Not charged again.", "You have already paid for this.",
		"This payment came from another tab or an older page, with a key of its own. It was refused before it reached your card.",
	},
	"already_enrolled": {
		NotCharged, notByThis, "This course is already yours.",
		"Nothing was ordered. You can read it now.",
	},
	"order_closed": {
		NotCharged, notByThis, "This order is closed.",
		"It was not paid in time. You can order the course again.",
	},
	"refund_not_possible": {
		NotCharged, nothingBack, "This amount cannot be given back.",
		"It is more than what is left, or the time for it is over. This request gave nothing back; the order says what was paid and what has gone back already.",
	},
	"too_large": {
		NotCharged, notByThis, "That was too much to read.",
		"The request was larger than any page of this shop sends. Nothing was stored and nothing was sent to Stripe.",
	},
	"media_type": {
		NotCharged, notByThis, "This request is in a form we do not read.",
		"Send a form or JSON. Nothing was stored and nothing was sent to Stripe.",
	},
	"key_reused": {
		NotCharged, notByThis, "This page is out of date. Nothing was sent.",
		"Its key was used for another request, and a key stands for one request only. The order’s own page has the key that is right now, and says whether it is paid.",
	},
	"internal": {
		NotKnownYet, notKnown, "Something went wrong on our side.",
		"It has been logged. If you were paying, do not pay on a new page: the order’s own page says whether it is paid, and the same submission can be sent again safely.",
	},
	"outcome_unknown": {
		NotKnownYet, notKnown, "We are checking. Do not pay again.",
		"Stripe did not answer in time, so we cannot say yet whether your card was charged. The order’s own page shows how it ended.",
	},
	"provider_busy": {
		NotCharged, "Not charged", "Stripe is busy.",
		"It turned the request away before doing anything. Wait a few seconds and send it again.",
	},
	"provider_refused": {
		NotCharged, "Not charged", "Stripe did not accept our request.",
		"The fault is ours, and it has been logged. Nothing was charged.",
	},
	"overloaded": {
		NotCharged, notByThis, "The shop is busy.",
		"Nothing was claimed and nothing was sent to Stripe. Wait a few seconds and send the same page again.",
	},
}

// refundWords are the words for the codes that mean something else where money was to go back.
var refundWords = map[string]Words{
	"request_in_progress": {
		NotKnownYet, notKnown, "This refund is already on its way.",
		"The first copy of this request is still being carried out. The order shows the answer in a few seconds.",
	},
	"claim_contended": {
		NotKnownYet, notKnown, "Several copies of this request arrived at once.",
		"One of them is being carried out. The order shows the answer in a few seconds.",
	},
	"internal": {
		NotKnownYet, notKnown, "Something went wrong on our side.",
		"It has been logged. The order says what has gone back, and the same request can be sent again safely.",
	},
	"outcome_unknown": {
		NotKnownYet, notKnown, "This refund is not confirmed yet.",
		"Stripe did not answer in time. It is given back once, however often it is asked for; the order shows how it ended.",
	},
	"provider_busy": {
		NotCharged, nothingBack, "Stripe is busy.",
		"It turned the request away before doing anything. Wait a few seconds and send it again.",
	},
	"provider_refused": {
		NotCharged, nothingBack, "Stripe did not accept our request.",
		"The fault is ours, and it has been logged. Nothing was given back.",
	},
	"overloaded": {
		NotCharged, nothingBack, "The shop is busy.",
		"Nothing was claimed and nothing was sent to Stripe. Wait a few seconds and send the same page again.",
	},
}

// RefundProblemWords is ProblemWords for a request to give money back.
func RefundProblemWords(code string) Words {
	if words, ok := refundWords[code]; ok {
		return words
	}
	return ProblemWords(code, true)
}

// ProblemWords returns what a problem page says about a code. paying tells whether the request was a payment or a refund:
// only then is there a money line. A code that is not in the table is one of Stripe's for a refused card.
func ProblemWords(code string, paying bool) Words {
	words, ok := problemWords[code]
	if !ok {
		words = Words{
			NotCharged, "Not charged", "Your bank declined the card. Nothing was charged.",
			DeclineWords(code) + " Choose another card, or try this one again.",
		}
	}
	if !paying {
		words.Money = ""
	}
	return words
}

// declineWords say what a bank reports. Codes that would tell a thief what the bank knows (lost_card, stolen_card,
// fraudulent, pickup_card) are left out on purpose and read like any other decline, as Stripe asks
// (https://docs.stripe.com/declines/codes).
var declineWords = map[string]string{
	"insufficient_funds":                    "It reports insufficient funds.",
	"expired_card":                          "It reports that the card has expired.",
	"incorrect_cvc":                         "It reports that the security code is not right.",
	"invalid_cvc":                           "It reports that the security code is not right.",
	"incorrect_number":                      "It reports that the card number is not right.",
	"processing_error":                      "It reports an error while processing the card.",
	"card_velocity_exceeded":                "It reports that the card’s limit is reached.",
	"withdrawal_count_limit_exceeded":       "It reports that the card’s limit is reached.",
	"currency_not_supported":                "It reports that the card does not take this currency.",
	"card_not_supported":                    "It reports that the card cannot be used for this.",
	"authentication_required":               "It asks you to confirm the payment first.",
	"payment_intent_authentication_failure": "It could not confirm that it was you.",
}

// DeclineWords says what the bank reports, a sentence, from Stripe's decline code or, where there is none, its error code.
// A code that is not in the table, or may not be told, gets a sentence that says no more than that.
func DeclineWords(code string) string {
	if words, ok := declineWords[code]; ok {
		return words
	}
	return "It gives no reason."
}
