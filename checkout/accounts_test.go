package checkout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/idempotency"
)

// TestOrdersOf: what one account sees of its orders is what Order says of each,
// and nothing of anybody else's.
func TestOrdersOf(t *testing.T) {
	t.Parallel()
	s := open(t)
	order := s.order(course)
	declined, err := s.pay(order.ID, order.PaymentKey, "pm_card_chargeDeclined")
	require.NoError(t, err)
	payment := s.paid(order.ID, decode[checkout.Problem](t, declined).PaymentKey, visa)
	_, err = s.refund(payment.ID, "refund", 900)
	require.NoError(t, err)
	s.order(gift)
	_, err = s.PlaceOrder(t.Context(), checkout.OrderRequest{Account: "acc_other", Key: "k", Course: course})
	require.NoError(t, err)

	list, err := s.OrdersOf(t.Context(), account, "acc_other", "acc_nobody")
	require.NoError(t, err)
	require.Len(t, list, 3)
	for _, o := range list {
		one, err := s.Order(t.Context(), o.Account, o.ID)
		require.NoError(t, err)
		require.ElementsMatch(t, one.Payments, o.Payments)
		require.ElementsMatch(t, one.Refunds, o.Refunds)
		one.Payments, one.Refunds, o.Payments, o.Refunds = nil, nil, nil, nil
		require.Equal(t, one, o)
	}
	mine, err := s.OrdersOf(t.Context(), account)
	require.NoError(t, err)
	require.Len(t, mine, 2)
	require.Equal(t, order.ID, mine[1].ID, "newest first")
	require.Len(t, mine[1].Payments, 2)
	require.Len(t, mine[1].Refunds, 1)
}

func TestNeedsPerson(t *testing.T) {
	t.Parallel()
	k := idempotency.KeyState{Status: idempotency.InProgress, LeaseLeft: -time.Second, CompleterTries: 100}
	require.True(t, checkout.NeedsPerson(k))
	for _, change := range []func(*idempotency.KeyState){
		func(k *idempotency.KeyState) { k.Status = idempotency.Completed },
		func(k *idempotency.KeyState) { k.LeaseLeft = time.Second },
		func(k *idempotency.KeyState) { k.CompleterTries = 1 },
	} {
		other := k
		change(&other)
		require.False(t, checkout.NeedsPerson(other))
	}
}
