package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
)

// refuseRecord makes PostgreSQL refuse the record of money the first so many
// times, with this SQLSTATE. The money has moved by then.
func (s *shop) refuseRecord(times int, code string) {
	s.t.Helper()
	// A sequence, since what a refused transaction counts is rolled back.
	_, err := s.pool.Exec(s.t.Context(), fmt.Sprintf(`
		CREATE SEQUENCE refused;
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('refused') <= %d THEN RAISE EXCEPTION 'not now' USING ERRCODE = '%s'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON payments FOR EACH ROW WHEN (NEW.status = 'succeeded') EXECUTE FUNCTION refuse()`,
		times, code))
	require.NoError(s.t, err)
}

func TestRecord(t *testing.T) {
	t.Parallel()

	// A lock that took too long, a statement that did, a server that is full, or
	// read-only in a failover: the buyer is not told "unknown" for it.
	for _, code := range []string{"55P03", "57014", "53100", "25006"} {
		t.Run("IsRunAgainAfterWhatPasses/"+code, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			order := s.order(course)
			s.refuseRecord(2, code)
			s.paid(order.ID, order.PaymentKey, visa)
			s.agree(order.ID, 1)
			require.Equal(t, 1, s.confirms())
		})
	}

	t.Run("ThatFailsLeavesTheKeyToTheNextRequestAtOnce", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		order := s.order(course)
		s.refuseRecord(1, "P0001")
		_, err := s.pay(order.ID, order.PaymentKey, visa)
		conflict(t, err, checkout.ErrOutcomeUnknown)

		var left time.Duration
		require.NoError(t, s.pool.QueryRow(t.Context(),
			"SELECT lease_until - clock_timestamp() FROM idempotency_keys WHERE key = $1", order.PaymentKey).Scan(&left))
		require.LessOrEqual(t, left, 2*time.Second, "the lease is shortened")

		s.lapse()
		s.paid(order.ID, order.PaymentKey, visa)
		s.agree(order.ID, 1)
	})
}
