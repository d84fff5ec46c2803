package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"payonce/checkout/stripesim"
)

// buyer is a customer and what it has in hand.
type buyer struct {
	*world
	*customer
	number int

	mu   sync.Mutex
	sent []attempt // every payment and refund that it has sent
}

// attempt is one keyed request.
type attempt struct {
	path, key string
	body      any
}

var (
	soldCourses = []string{"idempotency-end-to-end", "postgresql-under-concurrency", "stripe-in-production", "webhooks-are-a-different-ledger", "proof-by-exhaustion", "payments-platform-team"}
	methods     = []string{
		"pm_card_visa", "pm_card_mastercard", "pm_card_chargeDeclined", "pm_card_chargeDeclinedExpiredCard",
		"pm_card_authenticationRequired", "pm_card_authenticationRequired", "pm_sim_reply_lost", "pm_sim_reply_lost", "pm_sim_never_arrived",
		"pm_sim_rate_limited", "pm_sim_server_error", "pm_sim_processing", "pm_sim_slow", "pm_sim_always_500",
	}
)

// act is one thing that a buyer does.
func (b *buyer) act(r *rand.Rand) {
	shop, other := b.world.shop(r.IntN(2)), b.world.shop(r.IntN(2))
	course := soldCourses[r.IntN(len(soldCourses))]
	method, wish := methods[r.IntN(len(methods))], r.IntN(10)
	copies, patient := 1+r.IntN(3), r.IntN(4) > 0
	hangUpAfter := time.Duration(r.IntN(400)) * time.Millisecond

	c := b.customer.at(shop)
	placed := c.post("/orders", newKey(), orderBody(course))
	o, known := b.live(c, placed)
	if !known {
		return
	}
	switch {
	case o.Status == "paid" && wish < 4 && len(o.Payments) > 0:
		amount := o.Amount
		if wish == 0 {
			amount = 1 + r.Int64N(o.Amount)
		}
		b.send(c, other, attempt{refundsOf(succeeded(o)), newKey(), refundBody(amount)}, copies, hangUpAfter, patient)
	case o.Status != "open":
		b.again(r, shop)
	case wish == 0: // a key of its own, as from another tab
		b.send(c, other, attempt{paymentsOf(o), newKey(), paymentBody(method)}, copies, hangUpAfter, patient)
	case wish == 1: // a buyer who waits for the bank, and wants another card
		for _, p := range o.Payments {
			c.raw(http.MethodPost, "/payments/"+p.ID+"/cancel", "", "Accept", "application/json")
		}
	case wish == 2:
		b.again(r, shop)
	default:
		b.send(c, other, attempt{paymentsOf(o), o.PaymentKey, paymentBody(method)}, copies, hangUpAfter, patient)
		b.throughTheBank(c, o, r.IntN(4))
	}
}

// live reads the order that stands for a course, new or not.
func (b *buyer) live(c *customer, placed answer) (o order, known bool) {
	var said struct{ ID, Order string }
	if placed.err != nil || json.Unmarshal([]byte(placed.body), &said) != nil {
		return o, false
	}
	id := said.ID
	if id == "" {
		id = said.Order
	}
	read := c.get("/orders/" + id)
	return o, id != "" && read.err == nil && read.status == http.StatusOK && json.Unmarshal([]byte(read.body), &o) == nil
}

func succeeded(o order) (p payment) {
	for _, p = range o.Payments {
		if p.Status == "succeeded" {
			return p
		}
	}
	return p
}

// send sends a request several times at once to two shops, hangs up on one, and
// may go on until it knows.
func (b *buyer) send(c *customer, other *shop, a attempt, copies int, hangUpAfter time.Duration, patient bool) {
	b.mu.Lock()
	b.sent = append(b.sent, a)
	b.mu.Unlock()
	atOnce(copies, func(i int) answer {
		switch i {
		case 0:
			return c.post(a.path, a.key, a.body)
		case 1:
			ctx, cancel := context.WithTimeout(context.Background(), hangUpAfter)
			defer cancel()
			return c.send(c.keyed(a.path, a.key, a.body).WithContext(ctx))
		}
		return c.at(other).post(a.path, a.key, a.body)
	})
	for try := 0; patient && try < 3; try++ {
		got := c.at(other).post(a.path, a.key, a.body)
		if definitive(got) {
			return
		}
	}
}

// again sends something that was sent before, some time ago.
func (b *buyer) again(r *rand.Rand, at *shop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sent) == 0 {
		return
	}
	a := b.sent[r.IntN(len(b.sent))]
	b.customer.at(at).post(a.path, a.key, a.body)
}

// throughTheBank answers the bank, if it asks: yes, no, or not at all; and comes
// back from there or does not.
func (b *buyer) throughTheBank(c *customer, o order, wish int) {
	read, known := b.live(c, c.get("/orders/"+o.ID))
	if !known || wish == 0 {
		return
	}
	for _, p := range read.Payments {
		if p.Status != "requires_action" || p.PaymentIntent == "" {
			continue
		}
		outcome := stripesim.Succeeded
		if wish == 1 {
			outcome = stripesim.Failed
		}
		if finished, err := plainClient.Post("http://"+b.stripe.addr+"/_sim/payment_intents/"+p.PaymentIntent+"/finish?outcome="+string(outcome), "", nil); err == nil {
			_ = finished.Body.Close()
		}
		if wish != 2 {
			c.get("/orders/" + o.ID + "/return")
		}
	}
}
