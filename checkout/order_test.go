package checkout_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/idempotency"
)

func TestPlaceOrder(t *testing.T) {
	t.Parallel()

	t.Run("TwoKeysGiveOneOrder", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		const keys = 8
		ids, statuses := make([]string, keys), make([]int, keys)
		barrier := make(chan struct{})
		var done sync.WaitGroup
		for i := range keys {
			done.Go(func() {
				<-barrier
				answer, err := s.PlaceOrder(t.Context(), checkout.OrderRequest{Account: account, Key: freshKey(), Course: course})
				if err == nil {
					ids[i], statuses[i] = decode[checkout.OrderView](t, answer).ID, answer.Status
				}
			})
		}
		close(barrier)
		done.Wait()
		created := 0
		for i := range keys {
			require.Equal(t, ids[0], ids[i])
			if statuses[i] == 201 {
				created++
			} else {
				require.Equal(t, 200, statuses[i])
			}
		}
		require.Equal(t, 1, created)
		require.Equal(t, 1, s.count("orders"))
	})

	t.Run("SameKeyReplaysAfterTheOrderIsPaid", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		request := checkout.OrderRequest{Account: account, Key: "order-once", Course: course}
		first, err := s.PlaceOrder(t.Context(), request)
		require.NoError(t, err)
		order := decode[checkout.OrderView](t, first)
		s.paid(order.ID, order.PaymentKey, visa)
		again, err := s.PlaceOrder(t.Context(), request)
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, string(first.Body), string(again.Body))
	})

	t.Run("OwnedCourseIsRefusedBeforeAnything", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		s.paid(order.ID, order.PaymentKey, visa)
		requests := len(s.stripe.Requests())
		_, err := s.PlaceOrder(t.Context(), checkout.OrderRequest{Account: account, Key: "again", Course: course})
		c := conflict(t, err, checkout.ErrAlreadyEnrolled)
		require.Equal(t, course, c.Course)
		require.Equal(t, order.ID, c.Order)
		require.Equal(t, 0, s.count("idempotency_keys WHERE key = 'again'"))
		require.Len(t, s.stripe.Requests(), requests, "Stripe hears nothing of it")
	})

	t.Run("FreeCourseIsPaidAtOnceWithoutStripe", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(gift)
		require.Equal(t, checkout.OrderPaid, order.Status)
		require.Empty(t, order.PaymentKey)
		require.Empty(t, s.stripe.Requests())
		offer, err := s.Offer(t.Context(), account, gift)
		require.NoError(t, err)
		require.True(t, offer.Owned)
	})

	t.Run("UnknownCourseNamesTheField", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for _, slug := range []string{"no-such-course", "", "x\x00y", "É", "../etc"} {
			_, err := s.PlaceOrder(t.Context(), checkout.OrderRequest{Account: account, Key: freshKey(), Course: slug})
			var invalid *checkout.InvalidError
			require.ErrorAs(t, err, &invalid, slug)
			require.Equal(t, "course", invalid.Field)
		}
		require.Equal(t, 0, s.count("idempotency_keys"))
	})

	t.Run("AnotherAccountSeesNothing", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		_, err := s.Order(t.Context(), "acc_other", order.ID)
		require.ErrorIs(t, err, checkout.ErrNotFound)
		_, err = s.Pay(t.Context(), checkout.PaymentRequest{
			Account: "acc_other", Key: idempotency.Key(order.PaymentKey), Order: order.ID, PaymentMethod: visa,
		})
		require.ErrorIs(t, err, checkout.ErrNotFound)
		require.Equal(t, 0, s.count("idempotency_keys WHERE scope = 'acc_other'"))
		require.Empty(t, s.stripe.Requests())
	})

	t.Run("APriceThatStripeWouldRefuseCannotBeStored", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for _, price := range []struct {
			amount   int64
			currency string
		}{{49, "usd"}, {-1, "usd"}, {100000000, "usd"}, {49, "jpy"}, {29, "gbp"}, {4900, "USD"}, {4900, "xyz"}} {
			_, err := s.pool.Exec(t.Context(), `
				INSERT INTO courses (slug, title, summary, amount, currency, position) VALUES ('bad', 'Bad', 'Bad', $1, $2, 99)`,
				price.amount, price.currency)
			require.ErrorContains(t, err, "courses_", "%v", price)
		}
	})
}
