package stripesim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

func TestSmoke(t *testing.T) {
	c := start(t, stripesim.Config{Journal: t.TempDir() + "/j"})
	id := c.create()
	r := c.confirm(id, "k1", "pm_card_visa", "expand[]", "latest_charge")
	t.Logf("%d %s", r.status, r.raw)
	require.Equal(t, 200, r.status)
	r2 := c.confirm(id, "k1", "pm_card_visa", "expand[]", "latest_charge")
	require.True(t, r2.replayed())
	require.Equal(t, r.raw, r2.raw)
	id = c.create()
	r = c.confirm(id, "k2", "pm_card_chargeDeclined")
	t.Logf("%d %s", r.status, r.raw)
	require.Equal(t, 402, r.status)
	r = c.confirm(id, "k3", "pm_sim_reply_lost")
	require.Error(t, r.err)
	r = c.confirm(id, "k3", "pm_sim_reply_lost")
	require.Equal(t, 200, r.status)
	t.Logf("%+v", c.sim.Counts())
}
