package stripepay_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
)

// TestEachAnswerProvesWhatItProves holds the table of outcomes: what Stripe, or
// whoever stands between, may answer to a confirm, and what may be concluded.
// Every row is exactly one request under its key, and its error tells no secret.
func TestEachAnswerProvesWhatItProves(t *testing.T) {
	t.Parallel()
	open, declined := pi("requires_payment_method", ""), `{"error":{"charge":"ch_1","code":"card_declined","decline_code":"insufficient_funds","message":"Your card has insufficient funds.","payment_intent":`+pi("requires_payment_method", `"latest_charge":"ch_1"`)+`,"type":"card_error"}}`
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   checkout.ProviderError // Intent and Err are held apart
		intent checkout.IntentStatus  // of the intent that comes along
		err    error
	}{
		{"402 card error is a decline", says(402, declined), checkout.ProviderError{Fault: checkout.FaultDeclined, HTTPStatus: 402, Code: "card_declined", DeclineCode: "insufficient_funds"}, "requires_payment_method", nil},
		{"402 without a decline code is a decline", says(402, failure("card_error", "expired_card", open)), checkout.ProviderError{Fault: checkout.FaultDeclined, HTTPStatus: 402, Code: "expired_card"}, "requires_payment_method", nil},
		{"402 replayed is the same decline", replays(says(402, declined)), checkout.ProviderError{Fault: checkout.FaultDeclined, HTTPStatus: 402, Code: "card_declined", DeclineCode: "insufficient_funds", Replayed: true}, "requires_payment_method", nil},
		{"402 of an unknown type is a decline", says(402, failure("brand_new_error", "card_declined", open)), checkout.ProviderError{Fault: checkout.FaultDeclined, HTTPStatus: 402, Code: "card_declined"}, "requires_payment_method", nil},

		{"400 validation is refused", says(400, `{"error":{"code":"parameter_missing","message":"Missing required param.","param":"payment_method","type":"invalid_request_error"}}`), checkout.ProviderError{Fault: checkout.FaultRefused, HTTPStatus: 400, Code: "parameter_missing", Param: "payment_method"}, "", nil},
		{"400 without a code is refused", says(400, failure("invalid_request_error", "", open)), checkout.ProviderError{Fault: checkout.FaultRefused, HTTPStatus: 400}, "requires_payment_method", nil},
		{"400 replayed says that it is", replays(says(400, failure("invalid_request_error", "", open))), checkout.ProviderError{Fault: checkout.FaultRefused, HTTPStatus: 400, Replayed: true}, "requires_payment_method", nil},
		{"401 is refused", says(401, `{"error":{"message":"Invalid API Key provided: sk_test_*","type":"invalid_request_error"}}`), checkout.ProviderError{Fault: checkout.FaultRefused, HTTPStatus: 401}, "", nil},
		{"403 is refused", says(403, `{"error":{"message":"The provided key does not have the required permissions.","type":"invalid_request_error"}}`), checkout.ProviderError{Fault: checkout.FaultRefused, HTTPStatus: 403}, "", nil},
		{"404 is refused", says(404, `{"error":{"code":"resource_missing","message":"No such payment_intent: 'pi_1'","param":"intent","type":"invalid_request_error"}}`), checkout.ProviderError{Fault: checkout.FaultRefused, HTTPStatus: 404, Code: "resource_missing", Param: "intent"}, "", nil},

		{"unexpected state brings the intent that succeeded", says(400, failure("invalid_request_error", "payment_intent_unexpected_state", pi("succeeded", `"latest_charge":"ch_1"`))), checkout.ProviderError{Fault: checkout.FaultUnexpectedState, HTTPStatus: 400, Code: "payment_intent_unexpected_state"}, "succeeded", nil},
		{"unexpected state brings the intent that was canceled", says(400, failure("invalid_request_error", "payment_intent_unexpected_state", pi("canceled", ""))), checkout.ProviderError{Fault: checkout.FaultUnexpectedState, HTTPStatus: 400, Code: "payment_intent_unexpected_state"}, "canceled", nil},
		{"another intent than the one asked for is not passed on", says(400, failure("invalid_request_error", "payment_intent_unexpected_state", strings.Replace(pi("succeeded", ""), "pi_1", "pi_2", 1))), checkout.ProviderError{Fault: checkout.FaultUnexpectedState, HTTPStatus: 400, Code: "payment_intent_unexpected_state"}, "", nil},

		{"idempotency_error has no code and is no refusal", says(400, failure("idempotency_error", "", open)), checkout.ProviderError{Fault: checkout.FaultKeyMismatch, HTTPStatus: 400}, "requires_payment_method", nil},
		{"409 key in use, whatever its type", says(409, failure("invalid_request_error", "idempotency_key_in_use", open)), checkout.ProviderError{Fault: checkout.FaultKeyInUse, HTTPStatus: 409, Code: "idempotency_key_in_use"}, "requires_payment_method", nil},
		{"409 of the documented type", says(409, failure("idempotency_error", "idempotency_key_in_use", open)), checkout.ProviderError{Fault: checkout.FaultKeyInUse, HTTPStatus: 409, Code: "idempotency_key_in_use"}, "requires_payment_method", nil},
		{"409 without a code", says(409, failure("invalid_request_error", "", open)), checkout.ProviderError{Fault: checkout.FaultKeyInUse, HTTPStatus: 409}, "requires_payment_method", nil},

		{"429 rate limit is busy", says(429, failure("invalid_request_error", "rate_limit", open)), checkout.ProviderError{Fault: checkout.FaultBusy, HTTPStatus: 429, Code: "rate_limit"}, "requires_payment_method", nil},
		{"429 lock timeout is unknown", says(429, failure("invalid_request_error", "lock_timeout", open)), checkout.ProviderError{HTTPStatus: 429, Code: "lock_timeout"}, "requires_payment_method", nil},
		{"429 without a code is unknown", says(429, failure("invalid_request_error", "", open)), checkout.ProviderError{HTTPStatus: 429}, "requires_payment_method", nil},

		{"424 is unknown", says(424, failure("api_error", "", open)), checkout.ProviderError{HTTPStatus: 424}, "requires_payment_method", nil},
		{"424 replayed is stored", replays(says(424, failure("api_error", "", open))), checkout.ProviderError{Fault: checkout.FaultStored, HTTPStatus: 424, Replayed: true}, "requires_payment_method", nil},
		{"500 is unknown", says(500, failure("api_error", "", open)), checkout.ProviderError{HTTPStatus: 500}, "requires_payment_method", nil},
		{"500 replayed is stored", replays(says(500, failure("api_error", "", open))), checkout.ProviderError{Fault: checkout.FaultStored, HTTPStatus: 500, Replayed: true}, "requires_payment_method", nil},
		{"503 is unknown", says(503, failure("api_error", "", open)), checkout.ProviderError{HTTPStatus: 503}, "requires_payment_method", nil},
		{"a status nobody expects is unknown", says(422, failure("invalid_request_error", "", open)), checkout.ProviderError{HTTPStatus: 422}, "requires_payment_method", nil},

		{"502 of a proxy is unknown", says(502, "<html>"+secret), checkout.ProviderError{HTTPStatus: 502}, "", stripepay.ErrNotStripes},
		{"400 of a proxy is unknown", says(400, "<html>"+secret), checkout.ProviderError{HTTPStatus: 400}, "", stripepay.ErrNotStripes},
		{"402 of a proxy is unknown", says(402, "<html>"+secret), checkout.ProviderError{HTTPStatus: 402}, "", stripepay.ErrNotStripes},
		{"402 without an error is unknown", says(402, pi("requires_payment_method", "")), checkout.ProviderError{HTTPStatus: 402}, "", stripepay.ErrNotStripes},
		{"403 of a gateway that speaks JSON is unknown", says(403, `{"error":{"message":"blocked"}}`), checkout.ProviderError{HTTPStatus: 403}, "", stripepay.ErrNotStripes},
		{"500 replayed and not JSON is stored", replays(says(500, "<html>")), checkout.ProviderError{Fault: checkout.FaultStored, HTTPStatus: 500, Replayed: true}, "", stripepay.ErrNotStripes},

		{"200 that cannot be decoded is unknown", says(200, `{"client_secret":"`+secret), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"200 with an amount that is no integer is unknown", says(200, `{"id":"pi_1","status":"succeeded","amount":4.9e3,"client_secret":"`+secret+`"}`), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"200 and empty is unknown", says(200, ""), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"200 null is unknown", says(200, "null"), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"200 with an id alone is unknown", says(200, `"pi_1"`), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"200 without an id is unknown", says(200, `{"status":"succeeded"}`), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"200 without a status is unknown", says(200, `{"id":"pi_1"}`), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"200 with another intent is unknown", says(200, strings.Replace(pi("succeeded", ""), "pi_1", "pi_2", 1)), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"200 that asks for a retry is not retried", withHeader("Stripe-Should-Retry", "true", says(200, "")), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"503 that asks for a retry is not retried", withHeader("Stripe-Should-Retry", "true", says(503, failure("api_error", "", open))), checkout.ProviderError{HTTPStatus: 503}, "requires_payment_method", nil},
		{"202 is unknown", says(202, pi("succeeded", "")), checkout.ProviderError{HTTPStatus: 202}, "", stripepay.ErrNotStripes},
		{"a redirect is not followed", withHeader("Location", "/v1/payment_intents/pi_1/confirm", says(307, pi("succeeded", ""))), checkout.ProviderError{HTTPStatus: 307}, "", stripepay.ErrNotStripes},
		{"an endless answer is unknown", says(200, strings.Repeat(" ", 5<<20)+pi("succeeded", "")), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},
		{"an answer cut short is unknown", withHeader("Content-Length", "5000", says(200, pi("succeeded", ""))), checkout.ProviderError{HTTPStatus: 200}, "", stripepay.ErrNotStripes},

		{"a connection closed without an answer is unknown", hangUp, checkout.ProviderError{}, "", stripepay.ErrNoAnswer},
		{"bytes that are not HTTP are unknown", raw(secret + "\r\n\r\n"), checkout.ProviderError{}, "", stripepay.ErrNoAnswer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, test.answer)
			intent, err := confirm(t.Context(), provider(t, s.URL))
			got := faulted(t, err)
			require.Zero(t, intent)
			if test.err != nil {
				require.ErrorIs(t, err, test.err)
			}
			if test.intent == "" {
				require.Nil(t, got.Intent)
			} else {
				require.NotNil(t, got.Intent)
				require.Equal(t, "pi_1", got.Intent.ID)
				require.Equal(t, test.intent, got.Intent.Status)
			}
			if test.want.HTTPStatus != 0 {
				test.want.RequestID = "req_1"
			}
			got.Intent, got.Err = nil, nil
			require.Equal(t, test.want, *got)
			require.Len(t, s.seen(), 1, "one call is one request")
			requireKeyed(t, s.seen())
		})
	}
}

// TestEveryCallIsJudged holds that no method has a way round the table.
func TestEveryCallIsJudged(t *testing.T) {
	t.Parallel()
	answers := map[checkout.Fault]http.HandlerFunc{
		checkout.FaultUnknown: says(500, failure("api_error", "", pi("processing", ""))),
		checkout.FaultStored:  replays(says(500, failure("api_error", "", pi("processing", "")))),
		checkout.FaultBusy:    says(429, failure("invalid_request_error", "rate_limit", pi("processing", ""))),
		checkout.FaultRefused: says(404, failure("invalid_request_error", "resource_missing", pi("processing", ""))),
	}
	for name, call := range calls {
		for fault, answer := range answers {
			t.Run(name+"/"+fault.String(), func(t *testing.T) {
				t.Parallel()
				s := serve(t, answer)
				require.Equal(t, fault, faulted(t, call(t.Context(), provider(t, s.URL))).Fault)
				require.Len(t, s.seen(), 1, "one call is one request")
				requireKeyed(t, s.seen())
			})
		}
		t.Run(name+"/an empty object", func(t *testing.T) {
			t.Parallel()
			s := serve(t, says(200, "{}"))
			err := call(context.Background(), provider(t, s.URL))
			require.Equal(t, checkout.FaultUnknown, faulted(t, err).Fault)
			require.ErrorIs(t, err, stripepay.ErrNotStripes)
			require.Len(t, s.seen(), 1, "one call is one request")
			requireKeyed(t, s.seen())
		})
	}
}

func withHeader(name, value string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(name, value)
		next(w, r)
	}
}
