package stripesim

import "net/http"

// operation executes one call inside a transaction and returns the object to show. What it put is kept, and its result
// stored under the key, when it succeeds or when its error says that the endpoint had begun.
type operation func(*tx, params) (any, *apiError)

// route is one endpoint of the API.
type route struct {
	method, pattern string // the path's variable is always {id}
	takes           []param
	run             operation
	pays            bool                         // may confirm a PaymentIntent, so that a pm_sim_ method may act
	locks           func(*account, *call) string // id of the object that one call at a time may change; "" for none
}

func (r route) name() string { return r.method + " " + r.pattern }

func expandable(fields ...param) []param {
	return append(fields, param{name: "expand", kind: texts})
}

func listing(fields ...param) []param {
	return expandable(append(fields,
		param{name: "created", kind: period},
		param{name: "ending_before", kind: text},
		param{name: "limit", kind: integer},
		param{name: "starting_after", kind: text},
	)...)
}

func unimitatedParams(names ...string) []param {
	fields := make([]param, len(names))
	for i, name := range names {
		fields[i] = param{name: name, kind: unimitated}
	}
	return fields
}

// routes is every endpoint the local Stripe has.
func routes() []route {
	get, post := http.MethodGet, http.MethodPost
	return []route{
		{method: post, pattern: "/v1/payment_intents", takes: intentCreateParams(), run: createPaymentIntent, pays: true},
		{method: get, pattern: "/v1/payment_intents", takes: listing(unimitatedParams("customer")...), run: list("payment_intent", nil)},
		{method: get, pattern: "/v1/payment_intents/{id}", takes: expandable(param{name: "client_secret", kind: text}), run: retrievePaymentIntent},
		{method: post, pattern: "/v1/payment_intents/{id}", takes: intentUpdateParams(), run: updatePaymentIntent, locks: subject},
		{method: post, pattern: "/v1/payment_intents/{id}/confirm", takes: intentConfirmParams(), run: confirmPaymentIntent, pays: true, locks: subject},
		{method: post, pattern: "/v1/payment_intents/{id}/cancel", takes: intentCancelParams(), run: cancelPaymentIntent, locks: subject},
		{method: post, pattern: "/v1/payment_intents/{id}/capture", takes: intentCaptureParams(), run: capturePaymentIntent, locks: subject},

		{
			method: get, pattern: "/v1/charges", run: list("charge", chargeOf),
			takes: listing(append(unimitatedParams("customer"), param{name: "payment_intent", kind: text}, param{name: "transfer_group", kind: text})...),
		},
		{method: get, pattern: "/v1/charges/{id}", takes: expandable(), run: retrieveCharge},

		{method: post, pattern: "/v1/refunds", takes: refundCreateParams(), run: createRefund, locks: refundedIntent},
		{
			method: get, pattern: "/v1/refunds", run: list("refund", refundOf),
			takes: listing(param{name: "charge", kind: text}, param{name: "payment_intent", kind: text}),
		},
		{method: get, pattern: "/v1/refunds/{id}", takes: expandable(), run: retrieveRefund},

		{method: get, pattern: "/v1/payment_methods/{id}", takes: expandable(), run: retrievePaymentMethod},

		{method: post, pattern: "/v1/test_helpers/confirmation_tokens", takes: tokenCreateParams(), run: createConfirmationToken},
		{method: get, pattern: "/v1/confirmation_tokens/{id}", takes: expandable(), run: retrieveConfirmationToken},

		{
			method: get, pattern: "/v1/events", run: list("event", eventOf),
			takes: listing(param{name: "type", kind: text}, param{name: "types", kind: texts}, param{name: "delivery_success", kind: boolean}),
		},
		{method: get, pattern: "/v1/events/{id}", takes: expandable(), run: retrieveEvent},

		{
			method: get, pattern: "/v1/disputes", run: list("dispute", disputeOf),
			takes: listing(param{name: "charge", kind: text}, param{name: "payment_intent", kind: text}),
		},
		{method: get, pattern: "/v1/disputes/{id}", takes: expandable(), run: retrieveDispute},
		{method: post, pattern: "/v1/disputes/{id}", takes: disputeUpdateParams(), run: updateDispute, locks: subject},

		{method: post, pattern: "/v1/webhook_endpoints", takes: endpointCreateParams(), run: createEndpoint},
		{method: get, pattern: "/v1/webhook_endpoints", takes: listing(), run: list("webhook_endpoint", nil)},
		{method: get, pattern: "/v1/webhook_endpoints/{id}", takes: expandable(), run: retrieveEndpoint},
		{method: post, pattern: "/v1/webhook_endpoints/{id}", takes: endpointUpdateParams(), run: updateEndpoint, locks: subject},
		{method: http.MethodDelete, pattern: "/v1/webhook_endpoints/{id}", run: deleteEndpoint, locks: subject},
	}
}

// subject locks the object named in the path.
func subject(_ *account, c *call) string { return c.subject }
