package checkout_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/migrations/dbtest"
)

// doubt loses the answer to the next COMMIT, which the server carries out, and
// the connection with it.
type doubt struct{ loses, lost atomic.Bool }

func (d *doubt) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return &doubtful{Conn: conn, doubt: d}, err
}

type doubtful struct {
	net.Conn
	doubt *doubt
	cut   atomic.Bool
}

func (c *doubtful) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("COMMIT\x00")) && c.doubt.loses.CompareAndSwap(true, false) {
		c.cut.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *doubtful) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p) // when the server answers, it has committed
	if err == nil && c.cut.Load() {
		c.doubt.lost.Store(true)
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// openInDoubt opens a shop, and gives what makes the COMMIT of its next claim
// doubtful.
func openInDoubt(t *testing.T) (*shop, *doubt) {
	t.Helper()
	config, err := pgxpool.ParseConfig(dbtest.NewURL(t))
	require.NoError(t, err)
	d := &doubt{}
	config.MaxConns = 4
	config.ConnConfig.DialFunc = d.dial
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // every statement's text is on the line
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return openOn(t, pool), d
}

// TestClaimInDoubt: the answer to a claim's COMMIT is lost, and it had happened.
// The claim is found to be ours, and with it must come what it is about: the
// order, the payment, the refund.
func TestClaimInDoubt(t *testing.T) {
	t.Parallel()
	charged := func(s *shop, d *doubt, o checkout.OrderView, method string) checkout.PaymentView {
		s.t.Helper()
		d.loses.Store(true)
		payment := s.paid(o.ID, o.PaymentKey, method)
		require.True(s.t, d.lost.Load())
		s.agree(o.ID, 1)
		return payment
	}
	busy := func(s *shop) {
		_, err := s.stripe.Add(stripesim.Rule{Method: "POST", Path: "/v1/refunds", Action: stripesim.Fail, Failure: &stripesim.Failure{Status: 429, Code: "rate_limit"}})
		require.NoError(s.t, err)
	}

	t.Run("OfAFreshKeyPays", func(t *testing.T) {
		t.Parallel()
		s, d := openInDoubt(t)
		charged(s, d, s.order(course), visa)
	})
	t.Run("OfAReleasedKeyPays", func(t *testing.T) {
		t.Parallel()
		s, d := openInDoubt(t)
		o := s.order(course)
		_, err := s.pay(o.ID, o.PaymentKey, "pm_sim_rate_limited")
		conflict(t, err, checkout.ErrProviderBusy)
		charged(s, d, o, "pm_sim_rate_limited")
	})
	t.Run("OfATakeoverPays", func(t *testing.T) {
		t.Parallel()
		s, d := openInDoubt(t)
		o := s.order(course)
		_, err := s.pay(o.ID, o.PaymentKey, "pm_sim_reply_lost")
		conflict(t, err, checkout.ErrOutcomeUnknown)
		s.lapse()
		charged(s, d, o, "pm_sim_reply_lost")
	})
	t.Run("OfARefundGivesBackOnce", func(t *testing.T) {
		t.Parallel()
		for name, before := range map[string]func(*shop, string){
			"fresh": func(*shop, string) {},
			"released": func(s *shop, payment string) {
				busy(s)
				_, err := s.refund(payment, "give-back", 4900)
				conflict(s.t, err, checkout.ErrProviderBusy)
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, d := openInDoubt(t)
				o := s.order(course)
				payment := s.paid(o.ID, o.PaymentKey, visa)
				before(s, payment.ID)
				d.loses.Store(true)
				answer, err := s.refund(payment.ID, "give-back", 4900)
				require.NoError(t, err)
				require.True(t, d.lost.Load())
				require.Equal(t, 201, answer.Status, string(answer.Body))
				require.Equal(t, checkout.OrderRefunded, s.now(o.ID).Status)
			})
		}
	})
}
