package e2e

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// TestShutdown: a shop that is asked to close.
func TestShutdown(t *testing.T) {
	t.Parallel()

	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String()+"InMidCallRecordsAndExitsZero", func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			shop, other := d.open(t), d.open(t) // the other one keeps Stripe up, and tells the end
			c := d.customer(t, shop)
			o := c.place("idempotency-end-to-end")
			held := d.stripe.hold(t, stripesim.Execution)
			answered := later(func() answer { return c.pay(o, o.PaymentKey, "pm_card_visa") })
			held.reached(t)

			shop.signal(t, signal)
			eventually(t, "new customers are turned away", func() bool { return c.get("/readyz").err != nil })
			require.True(t, shop.running(), "a call is in flight")
			held.release(t)
			first := <-answered
			c.paid(first)
			require.Zero(t, shop.wait(t), "the exit status")

			again := c.at(other).pay(o, o.PaymentKey, "pm_card_visa")
			require.True(t, again.replayed())
			require.Equal(t, first.body, again.body)
			d.stripe.requireOneCharge(t, o)
		})
	}

	t.Run("OfTheLastShopLeavesNoProcessBehind", func(t *testing.T) {
		t.Parallel()
		d := deployAlone(t)
		first := d.open(t)
		second := d.open(t)
		c := d.customer(t, second)
		who := d.stripe.running(t)

		// The first of two leaves PostgreSQL and Stripe to the other.
		first.close(t)
		require.Equal(t, who, d.stripe.running(t))
		o, _ := c.buy("idempotency-end-to-end")
		require.NotEmpty(t, processesOf(d))
		second.close(t)
		requireNothingLeft(t, d)

		// And everything is there again: the customer's session, the order, the
		// charge.
		d.reopen(t, second)
		require.Equal(t, "paid", c.order(o.ID).Status)
		require.True(t, c.pay(o, o.PaymentKey, "pm_card_visa").replayed())
		d.stripe.requireOneCharge(t, o)
	})

	t.Run("BeforeItIsOpenLeavesNoProcessBehind", func(t *testing.T) {
		t.Parallel()
		d := deployAlone(t)
		shop := d.begin(t, freeAddress(t))
		eventually(t, "it has begun to start what it needs", func() bool {
			_, err := os.Stat(d.dataDir)
			return err == nil
		})
		shop.signal(t, syscall.SIGTERM)
		require.Zero(t, shop.wait(t), "the exit status; %s", &shop.err)
		requireNothingLeft(t, d)
	})
}
