package e2e

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sighting is what a customer was answered under a key.
type sighting struct {
	key    string
	status int
	body   string
}

// recorded are the statuses of answers that stand in the ledger, if the request
// was accepted at all.
var recorded = []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusPaymentRequired}

// note keeps an answer for requireInvariants.
func (d *deployment) note(key string, a answer) {
	if a.err != nil || !slices.Contains(recorded, a.status) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[sighting{key, a.status, a.body}] = true
}

func (d *deployment) sightings() []sighting {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.seen))
}

// requireInvariants requires what must hold after everything, whoever was
// killed, cut off or in a hurry. The deployment must be open, and every payment
// followed to its end.
func requireInvariants(t testing.TB, d *deployment) {
	t.Helper()

	perOrder := map[string]int{}
	for _, c := range d.stripe.charges(t) {
		perOrder[c.Metadata.Order]++
		require.Equal(t, 1, perOrder[c.Metadata.Order], "charges for order %s", c.Metadata.Order)
		require.Equal(t, int64(1), sql[int64](t, d, `
			SELECT count(*) FROM orders
			 WHERE id = $1 AND status IN ('paid', 'refunded') AND amount = $2 AND currency = $3`,
			c.Metadata.Order, c.Amount, c.Currency), "charge %s is of an order that is paid", c.ID)
		require.Equal(t, int64(1), sql[int64](t, d, `
			SELECT count(*) FROM payments WHERE order_id = $1 AND charge = $2 AND status = 'succeeded' AND refunded = $3`,
			c.Metadata.Order, c.ID, c.AmountRefunded), "charge %s is written down, with what was refunded", c.ID)
	}
	require.Equal(t, int64(len(perOrder)), sql[int64](t, d, `
		SELECT count(*) FROM orders WHERE amount > 0 AND status IN ('paid', 'refunded')`), "orders that say paid, and charges")

	for what, query := range map[string]string{
		"orders with more than one succeeded payment": `
			SELECT count(*) FROM (SELECT FROM payments WHERE status = 'succeeded' GROUP BY account, order_id HAVING count(*) > 1) AS twice`,
		"accounts with more than one active enrolment in a course": `
			SELECT count(*) FROM (SELECT FROM enrolments WHERE status = 'active' GROUP BY account, course HAVING count(*) > 1) AS twice`,
		"paid orders without an active enrolment": `
			SELECT count(*) FROM orders o WHERE o.status = 'paid'
			   AND NOT EXISTS (SELECT FROM enrolments e WHERE e.account = o.account AND e.order_id = o.id AND e.status = 'active')`,
		"active enrolments without a paid order": `
			SELECT count(*) FROM enrolments e WHERE e.status = 'active'
			   AND NOT EXISTS (SELECT FROM orders o WHERE o.account = e.account AND o.id = e.order_id AND o.status = 'paid')`,
		"keys in progress past their lease": `
			SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress' AND lease_until < clock_timestamp()`,
		"payments that nothing will resolve": `
			SELECT count(*) FROM payments p WHERE p.status = 'pending'
			   AND NOT EXISTS (SELECT FROM idempotency_keys k WHERE k.scope = p.account AND k.key = p.key AND k.status = 'in_progress')`,
		"parameters kept after their key was completed": `
			SELECT count(*) FROM idempotency_keys WHERE status = 'completed' AND params IS NOT NULL`,
	} {
		require.Zero(t, sql[int64](t, d, query), what)
	}

	for _, s := range d.sightings() {
		require.Equal(t, int64(1), sql[int64](t, d, `
			SELECT count(*) FROM idempotency_keys WHERE key = $1 AND response_status = $2 AND response_body = $3`,
			s.key, s.status, []byte(s.body)), "key %s was answered with what is stored: %s", s.key, s.body)
	}
}
