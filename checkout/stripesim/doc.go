// Package stripesim is a local Stripe over HTTP: PaymentIntents, charges, refunds, disputes, confirmation tokens, events
// and webhooks in Stripe's wire format, API version 2024-06-20, with state, idempotency keys and a journal on disk.
// An unchanged stripe-go v79 talks to it through its backend URL. It shares no code with the shop that it judges: an
// oracle built from the code under test would prove nothing.
//
//	sim, err := stripesim.New(stripesim.Config{Journal: "/var/cache/payonce/stripe/journal"})
//	…
//	err = sim.Serve(ctx, listener) // or use sim as an http.Handler
//
//	curl -u sk_test_local: http://127.0.0.1:12111/v1/charges
//
// Every secret key that begins with sk_test_ is an account of its own; pk_ and live keys are refused.
//
// # What a call meets, in this order
//
//  1. authentication: 401
//  2. the rate limit: 429 rate_limit, only when a rule or a method asks for it
//  3. the idempotency key (POST only): the stored result is replayed; another endpoint or other parameters are 400
//     idempotency_error; a key whose call still runs is 409 idempotency_key_in_use
//  4. validation: 400, or 404 for an object in the path that does not exist
//  5. the object: 429 lock_timeout while another call works on it for longer than Config.LockWait
//  6. execution
//
// What 1 to 5 answer is not stored, so that the mended request may use the same key. The first result of 6 is, be it 200,
// 402 or 500, and payment_intent_unexpected_state unless Config.ForgetStateErrors says otherwise. A key is forgotten
// after 24 hours and then executes again. Nothing depends on the caller staying: who hangs up is charged all the same.
//
// # Payment methods
//
// Stripe's test methods (pm_card_visa, the declines, 3-D Secure, disputes, refunds that fail) do what
// https://docs.stripe.com/testing says. Each use of one makes a fresh PaymentMethod, which pays once. The pm_sim_
// methods charge like pm_card_visa and make something else go wrong. Once per PaymentIntent:
//
//	pm_sim_reply_lost     charges, stores the result under the key, drops the connection
//	pm_sim_never_arrived  drops the connection; nothing executed, nothing stored
//	pm_sim_rate_limited   429 rate_limit; nothing executed, nothing stored
//	pm_sim_server_error   500, stored under the key; nothing charged
//
// and always:
//
//	pm_sim_slow           charges after Config.SlowCall; meanwhile the key is in use, the PaymentIntent locked, and a
//	                      reader sees the old state
//	pm_sim_processing     processing, and succeeded after Config.Later
//	pm_sim_always_500     500, stored under each key; nothing charged
//
// A creation with confirm=true has no PaymentIntent yet: "once" is then once per idempotency key.
//
// # Journal
//
// Each call that changed something is one line, written before the answer and synced to disk: the charge and the result
// under its key stand in the same line, so that SIGKILL at any moment leaves both or neither. The file is read at start,
// a torn last line dropped, and rewritten without what Stripe would have forgotten (keys after a day, events after 30).
// The log of requests and the rules are in memory only.
//
// # The control surface
//
// By it tests steer the local Stripe; the methods of Server do the same from Go. JSON bodies, form parameters, JSON answers:
//
//	GET    /_sim/identity                       Config.ID, the product, the API version, the process
//	GET    /_sim/requests                       every request received: operation, key, status, replayed, executed, dropped
//	GET    /_sim/counts                         requests by operation, confirms by PaymentIntent and by key, charges by order
//	GET    /_sim/deliveries                     every attempt to deliver an event
//	POST   /_sim/rules                          a Rule: hold, drop, delay or fail matching calls
//	GET    /_sim/rules, /_sim/rules/{id}        rules in force, and how many calls each has acted on
//	POST   /_sim/rules/{id}/wait                answers once it has acted on `count` calls (1); 408 after `timeout` (30s)
//	POST   /_sim/rules/{id}/release             lets go what it holds
//	POST   /_sim/rules/{id}/break               drops what it holds
//	DELETE /_sim/rules/{id}                     ends it
//	POST   /_sim/delivery_rules                 a DeliveryRule: drop, hold, repeat, delay, tamper with, or send an event before the answer
//	GET    /_sim/delivery_rules
//	POST   /_sim/delivery_rules/{id}/release    sends what it holds
//	DELETE /_sim/delivery_rules/{id}            ends it
//	POST   /_sim/prune                          forgets keys: `key`, or all
//	POST   /_sim/advance                        moves the clock forward: `by` (25h)
//	POST   /_sim/payment_intents/{id}/finish    ends a challenge or processing: `outcome` (succeeded, failed)
//	POST   /_sim/emit                           an Emission: an event that did not happen
//	POST   /_sim/events/{id}/resend             delivers an event once more
//	POST   /_sim/webhook_endpoints/{id}/roll    a new signing secret; the old one is valid for `overlap` (24h)
//	POST   /_sim/reset                          forgets everything, or the account of the secret key in `key`
//
// A rule acts at one of three points: Arrival, before every gate, is a call still on its way in the network; Execution
// is a call that holds its key and object; Answer is a call that is done and not yet answered. A confirm held at Arrival,
// released after the PaymentIntent was canceled, is the late confirm that a fence must stop.
//
// Order of locks: the idempotency key (never waited for: 409), then the object (waited for, at most Config.LockWait),
// then the server's mutex (held for work in memory and one write). A held or slow call has the first two, never the third.
//
// # Webhooks
//
// Endpoints are registered through Stripe's own API. An event is sent to every endpoint that wants it
// Config.DeliverAfter after the fact, signed afresh at each attempt, and again after each of Config.Backoff until the
// endpoint answers 2xx. Order is not kept, and two endpoints get every event twice, as in life.
//
// # What it does not imitate
//
//   - Customers, saved cards, SetupIntents, subscriptions, invoices, Checkout, payouts, balance transactions, Connect.
//   - Any payment method but cards, and cards other than the test methods: no card number is ever taken.
//   - Stripe.js and the Payment Element: a browser cannot create a confirmation token here, a test helper can.
//   - API versions other than 2024-06-20; the v2 API; the search API.
//   - Rate limits, permissions of restricted keys, and delays, unless a rule or a method asks for them.
//   - Conversion between currencies, and the minimums that follow from it.
//   - What Stripe does not publish: which 400s are stored under a key, the cap on confirmations, the schedule of retries.
//
// The last are settings of Config, and a shop must work with each of them. A parameter that Stripe takes and the local
// Stripe would ignore is refused, so that nobody believes it was heard.
package stripesim
