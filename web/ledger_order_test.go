package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/idempotency"
)

// A key is filed under the order that it is about, before it has an answer too.
func TestAKeyIsFiledUnderItsOrder(t *testing.T) {
	t.Parallel()
	b := &book{payments: map[string]string{"pay_1": "ord_1"}}
	answered := func(body string) idempotency.Response {
		return idempotency.Response{Status: 201, Body: []byte(body)}
	}
	for _, row := range []struct {
		operation string
		answer    idempotency.Response
		order     string
	}{
		{"POST /orders/ord_1/payments", idempotency.Response{}, "ord_1"},
		{"POST /payments/pay_1/refunds", idempotency.Response{}, "ord_1"},
		{"POST /payments/pay_2/refunds", idempotency.Response{}, ""},
		{"POST /payments/pay_2/refunds", answered(`{"order":"ord_2","id":"ref_1"}`), "ord_2"},
		{"POST /orders", idempotency.Response{}, ""},
		{"POST /orders", answered(`{"id":"ord_3"}`), "ord_3"},
		{"POST /something/else", answered(`{"id":"x"}`), ""},
		{"POST /orders", answered(`not JSON`), ""},
	} {
		k := idempotency.KeyState{Operation: row.operation, Response: row.answer}
		require.Equal(t, row.order, b.orderOf(k), row.operation)
	}
}

// Enough of a key to find it again, too little to send it.
func TestKeysAreShortened(t *testing.T) {
	t.Parallel()
	require.Equal(t, "01JDZ8M4…R0HBE", shortKey("01JDZ8M4T6QK9V3X7C2N5R0HBE"))
	require.Equal(t, "orde…", shortKey("order-42"))
	require.Equal(t, "…", shortKey("k"))
	require.Equal(t, "POST /orders/ord_u3qc…qals/payments", shortOperation("POST /orders/ord_u3qcww324ier3hm275uyqals/payments"))
	require.Equal(t, "POST /orders", shortOperation("POST /orders"))
}
