package checkout

// TestMethods are Stripe's own test methods that the page offers, with what
// each of them does (https://docs.stripe.com/testing). They work with the local
// Stripe and with Stripe's test mode.
func TestMethods() []Method {
	return []Method{
		{ID: "pm_card_visa", Name: "Visa ending 4242", Note: "Approved"},
		{ID: "pm_card_mastercard", Name: "Mastercard ending 4444", Note: "Approved"},
		{ID: "pm_card_authenticationRequired", Name: "Visa ending 3184", Note: "Your bank asks you first (3-D Secure)"},
		{ID: "pm_card_chargeDeclined", Name: "Visa ending 0002", Note: "Declined"},
		{ID: "pm_card_chargeDeclinedInsufficientFunds", Name: "Visa ending 9995", Note: "Declined: insufficient funds"},
		{ID: "pm_card_chargeDeclinedExpiredCard", Name: "Visa ending 0069", Note: "Declined: the card has expired"},
		{ID: "pm_card_chargeDeclinedIncorrectCvc", Name: "Visa ending 0127", Note: "Declined: the security code is wrong"},
	}
}

// FaultMethods are not cards: they charge like pm_card_visa and break the line
// between the shop and the local Stripe, which alone knows them.
func FaultMethods() []Method {
	return []Method{
		{ID: "pm_sim_reply_lost", Name: "Reply lost", Note: "Charges, then the line drops before the answer", Fault: true},
		{ID: "pm_sim_never_arrived", Name: "Never arrived", Note: "The line drops before Stripe hears of it", Fault: true},
		{ID: "pm_sim_slow", Name: "Slow", Note: "Charges after 5 s", Fault: true},
		{ID: "pm_sim_rate_limited", Name: "Rate limited", Note: "429 once, then charges", Fault: true},
		{ID: "pm_sim_server_error", Name: "Server error", Note: "500, and Stripe stores it under the key", Fault: true},
		{ID: "pm_sim_processing", Name: "Processing", Note: "Accepted now, settled by webhook 3 s later", Fault: true},
		{ID: "pm_sim_always_500", Name: "Always 500", Note: "Never an answer: the shop asks, and ends the attempt", Fault: true},
	}
}
