package stripesim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// testMethod is what one of Stripe's test payment methods does (https://docs.stripe.com/testing), or one of the
// local Stripe's own pm_sim_ methods, which charge like pm_card_visa and make the network or the server misbehave.
type testMethod struct {
	brand, last4, funding string
	decline               *decline
	challenge             challengeRule
	blocked               bool // by Stripe's own rules: never sent to the card's network
	risk                  string
	cvc, zip              string // outcome of the check; "pass" and null when empty
	refund                refundRule
	dispute               *disputeRule
	fault                 fault
}

// decline is a card error: the code, the bank's reason, what Stripe says to it.
type decline struct {
	code, reason, message, param string
}

// challengeRule says when a method asks for 3-D Secure.
type challengeRule int

const (
	challengeNever     challengeRule = iota
	challengeOnRequest               // only when payment_method_options[card][request_three_d_secure] asks
	challengeAlways
)

// refundRule says what becomes of a refund of this method's charge.
type refundRule int

const (
	refundSucceeds refundRule = iota
	refundPending             // pending, later succeeded
	refundFails               // succeeded, later failed
)

// disputeRule is a dispute that follows the charge.
type disputeRule struct {
	reason, status string
}

// fault is what a pm_sim_ method makes go wrong.
type fault string

// The faults of the first group happen once per PaymentIntent; the method then behaves as pm_card_visa.
const (
	faultReplyLost    fault = "reply_lost"    // executes, stores the result under the key, drops the connection
	faultNeverArrived fault = "never_arrived" // drops the connection before anything is executed or stored
	faultRateLimited  fault = "rate_limited"  // 429
	faultServerError  fault = "server_error"  // 500, stored under the key, nothing charged

	faultProcessing fault = "processing" // processing, and succeeded after Config.Later
	faultSlow       fault = "slow"       // takes Config.SlowCall to execute, whether or not the caller waits
	faultAlways500  fault = "always_500" // as server_error, every time
)

var (
	genericDecline  = decline{"card_declined", "generic_decline", "Your card was declined.", ""}
	fraudulent      = decline{"card_declined", "fraudulent", "Your card was declined.", ""}
	expiredCard     = decline{"expired_card", "", "Your card has expired.", "exp_month"}
	incorrectCVC    = decline{"incorrect_cvc", "", "Your card's security code is incorrect.", "cvc"}
	processingError = decline{"processing_error", "", "An error occurred while processing your card. Try again in a little bit.", ""}

	insufficientFunds = decline{"card_declined", "insufficient_funds", "Your card has insufficient funds.", ""}
	lostCard          = decline{"card_declined", "lost_card", "Your card was declined.", ""}
	stolenCard        = decline{"card_declined", "stolen_card", "Your card was declined.", ""}
	velocityExceeded  = decline{"card_declined", "card_velocity_exceeded", "Your card was declined for making repeated attempts too frequently or exceeding its amount limit.", ""}

	// authenticationRequired answers a challenge that nobody is there to pass: off_session, or error_on_requires_action.
	authenticationRequired = decline{"authentication_required", "authentication_required", "Your card was declined. This transaction requires authentication.", ""}
)

func visa(last4 string) testMethod {
	return testMethod{brand: "visa", last4: last4, funding: "credit"}
}

func declined(last4 string, d decline) testMethod {
	m := visa(last4)
	m.decline = &d
	return m
}

func challenged(last4 string, rule challengeRule) testMethod {
	m := visa(last4)
	m.challenge = rule
	return m
}

func disputed(last4, reason, status string) testMethod {
	m := visa(last4)
	m.dispute = &disputeRule{reason, status}
	return m
}

func faulty(f fault) testMethod {
	m := visa("4242")
	m.fault = f
	return m
}

// tests are the payment methods that exist from the start, by the id to send.
var tests = map[string]testMethod{
	"pm_card_visa":       visa("4242"),
	"pm_card_visa_debit": {brand: "visa", last4: "5556", funding: "debit"},
	"pm_card_mastercard": {brand: "mastercard", last4: "4444", funding: "credit"},
	"pm_card_amex":       {brand: "amex", last4: "0005", funding: "credit"},
	"pm_card_discover":   {brand: "discover", last4: "1117", funding: "credit"},

	"pm_card_chargeDeclined":                           declined("0002", genericDecline),
	"pm_card_visa_chargeDeclined":                      declined("0002", genericDecline),
	"pm_card_chargeDeclinedInsufficientFunds":          declined("9995", insufficientFunds),
	"pm_card_visa_chargeDeclinedInsufficientFunds":     declined("9995", insufficientFunds),
	"pm_card_visa_chargeDeclinedLostCard":              declined("9987", lostCard),
	"pm_card_visa_chargeDeclinedStolenCard":            declined("9979", stolenCard),
	"pm_card_chargeDeclinedExpiredCard":                declined("0069", expiredCard),
	"pm_card_chargeDeclinedIncorrectCvc":               declined("0127", incorrectCVC),
	"pm_card_chargeDeclinedProcessingError":            declined("0119", processingError),
	"pm_card_visa_chargeDeclinedVelocityLimitExceeded": declined("6975", velocityExceeded),
	"pm_card_chargeCustomerFail":                       declined("0341", genericDecline),

	"pm_card_authenticationRequired":             challenged("3184", challengeAlways),
	"pm_card_authenticationRequiredOnSetup":      challenged("3155", challengeAlways), // nothing is ever set up here
	"pm_card_threeDSecure2Required":              challenged("3220", challengeAlways),
	"pm_card_threeDSecureOptional":               challenged("3055", challengeOnRequest),
	"pm_card_threeDSecureRequiredChargeDeclined": {brand: "visa", last4: "1629", funding: "credit", challenge: challengeAlways, decline: &genericDecline},

	"pm_card_createDispute":                   disputed("0259", "fraudulent", "needs_response"),
	"pm_card_createDisputeProductNotReceived": disputed("2685", "product_not_received", "needs_response"),
	"pm_card_createDisputeInquiry":            disputed("1976", "fraudulent", "warning_needs_response"),

	"pm_card_radarBlock":        {brand: "visa", last4: "0019", funding: "credit", decline: &fraudulent, blocked: true, risk: "highest"},
	"pm_card_riskLevelHighest":  {brand: "visa", last4: "4954", funding: "credit", decline: &fraudulent, blocked: true, risk: "highest"},
	"pm_card_riskLevelElevated": {brand: "visa", last4: "9235", funding: "credit", risk: "elevated"},
	"pm_card_cvcCheckFail":      {brand: "visa", last4: "0101", funding: "credit", cvc: "fail"},
	"pm_card_avsZipFail":        {brand: "visa", last4: "0036", funding: "credit", zip: "fail"},

	"pm_card_pendingRefund": {brand: "visa", last4: "7726", funding: "credit", refund: refundPending},
	"pm_card_refundFail":    {brand: "visa", last4: "5126", funding: "credit", refund: refundFails},

	"pm_sim_reply_lost":    faulty(faultReplyLost),
	"pm_sim_never_arrived": faulty(faultNeverArrived),
	"pm_sim_rate_limited":  faulty(faultRateLimited),
	"pm_sim_server_error":  faulty(faultServerError),
	"pm_sim_processing":    faulty(faultProcessing),
	"pm_sim_slow":          faulty(faultSlow),
	"pm_sim_always_500":    faulty(faultAlways500),
}

// card is what a PaymentMethod shows of the test method.
func (t testMethod) card() methodCard {
	sum := sha256.Sum256([]byte(t.brand + t.last4))
	c := methodCard{
		Brand: t.brand, Country: "US", DisplayBrand: t.brand, ExpMonth: 12, ExpYear: 2034,
		Checks:      cardChecks{CVCCheck: "pass"},
		Fingerprint: hex.EncodeToString(sum[:8]), Funding: t.funding, Last4: t.last4,
		Networks:          cardNetworks{Available: []string{t.brand}},
		ThreeDSecureUsage: threeDSecureUsage{Supported: true},
	}
	if t.cvc != "" {
		c.Checks.CVCCheck = t.cvc
	}
	if t.zip != "" {
		c.Checks.AddressPostalCodeCheck = &t.zip
	}
	return c
}

// outcome is who decided about the charge; d is nil when it was approved.
func (t testMethod) outcome(d *decline) outcome {
	o := outcome{RiskLevel: "normal", RiskScore: 12}
	switch t.risk {
	case "elevated":
		o.RiskLevel, o.RiskScore = t.risk, 68
	case "highest":
		o.RiskLevel, o.RiskScore = t.risk, 92
	}
	switch {
	case d == nil:
		o.NetworkStatus, o.Type, o.SellerMessage = "approved_by_network", "authorized", "Payment complete."
	case t.blocked:
		reason := "highest_risk_level"
		o.NetworkStatus, o.Type, o.Reason = "not_sent_to_network", "blocked", &reason
		o.SellerMessage = "Stripe blocked this payment as too risky."
	default:
		reason := d.reason
		if reason == "" {
			reason = d.code
		}
		o.NetworkStatus, o.Type, o.Reason = "declined_by_network", "issuer_declined", &reason
		o.SellerMessage = fmt.Sprintf("The bank returned the decline code `%s`.", reason)
	}
	return o
}
