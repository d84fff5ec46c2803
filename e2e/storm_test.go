package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// TestStorm: the program's own storm on two shops, which are killed in the
// middle and come back. Every order is charged once, and the storm says so.
func TestStorm(t *testing.T) {
	t.Parallel()
	d := deploy(t, brief...)
	one, two := d.open(t), d.open(t)
	// A call is on its way when its shop dies.
	held := d.stripe.hold(t, stripesim.Answer)
	storm := start(t, nil, "storm", "--url", one.url, "--url", two.url, "--orders", "12", "--copies", "6", "--at-once", "3",
		"--method", "pm_card_visa", "--method", "pm_sim_reply_lost", "--method", "pm_card_chargeDeclined")
	t.Cleanup(func() {
		if storm.running() {
			_ = storm.cmd.Process.Kill()
		}
		<-storm.ended
		if t.Failed() {
			storm.report(t)
		}
	})
	held.reached(t)
	one.kill(t)
	two.kill(t)
	held.drop(t)
	d.reopen(t, one)
	d.reopen(t, two)
	require.Zero(t, storm.wait(t), "%s", &storm.err)
	require.Contains(t, storm.out.String(), "Every invariant holds")
	require.Contains(t, storm.out.String(), "charges    8, counted at Stripe")
}
