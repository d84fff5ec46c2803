// Package checkout is the shop's checkout: courses, orders, payments, refunds
// and enrolments, on PostgreSQL and a payment Provider. It charges a card once
// for what a buyer wants once, and knows at every moment whether it did.
//
// # The flow
//
// A course is ordered (PlaceOrder) and the order is paid (Pay). The order
// carries the payment's idempotency key from the moment it is placed: one key
// per purchase intent, not per click, so that a double click, a refresh, the
// back button and a second tab all send the same key. Pay is three phases:
//
//	claim    one transaction: the key, and the pending payment, which takes
//	         the order's slot. A second key for the order is refused here,
//	         before the provider is called.
//	call     the provider, with no transaction and no connection held:
//	         create the PaymentIntent once, store its id, confirm it.
//	record   one transaction: the outcome, the order, the enrolment, the
//	         answer under the key, and the next key where one is safe.
//
// What is paid with is a method of the shop's list, or a confirmation token for a
// card that was typed into the provider's own form: a card never comes here. A
// token is good for one payment. It is frozen with its attempt and sent again as
// it was; another card, or another press of Pay, is another token, which under the
// same key is another request and refused.
//
// # Three kinds of outcome
//
// A definitive outcome (paid, declined, waiting for the bank) is stored under
// the key and replayed. A retryable one (the provider refused before it began)
// frees the slot, and the key may be tried again. An unknown one (a timeout, a
// broken line, a 500) is neither success nor failure: the key stays in progress
// and the slot stays held until somebody has asked the provider.
//
// # What ends an attempt
//
// Only two things end an attempt without success: the provider's answer to its
// own confirm under its own downstream key, or a terminal PaymentIntent. An
// intent that "requires a payment method" proves nothing, because a confirm may
// still be on its way to it. Whoever takes over a lapsed key therefore either
// sends the very same confirm again, soon after the claim; or asks, and if the
// intent is undecided cancels it. The cancel is the fence at the provider: once
// canceled, nothing was charged and nothing can be. Then the attempt is over
// (402 payment_not_made), and the next one gets a PaymentIntent of the next
// generation.
//
// # Rules
//
//   - One PaymentIntent per order at a time, its id stored under the ledger's
//     fence before the first confirm. Stripe takes the money of one intent once.
//   - Downstream keys come from our rows, never from the client's key, which may
//     be reaped and used again.
//   - The next key is minted in the transaction that records an outcome by which
//     no money moved and none can; never after an unknown one.
//   - One function settles (settle): whoever learns of an intent calls it. It
//     checks amount, currency, mode and order, and only moves forward.
//   - Locks are taken in one order: key, order, payment, refund, enrolment.
//   - Money is counted in int64 minor units; the amount is the order's, and the
//     order's is the catalogue's. What a client sends is never asked for a price.
//   - The schema states the rules: one open or paid order per account and
//     course, one payment in an order's slot, one active enrolment.
//
// # Reading order
//
// pay.go (the three phases), call.go (what is sent, and what the answers
// prove), settle.go (what is written), provider.go (what is needed of Stripe),
// place_order.go and refunding.go.
package checkout
