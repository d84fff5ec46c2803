package stripepay_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
)

// TestReusedConnectionThatDiesIsNotSentAgain: net/http repeats a request with an
// Idempotency-Key by itself when a kept-alive connection turns out dead, unless
// its body cannot be had again.
func TestReusedConnectionThatDiesIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		if name == "Intent" || name == "Refunds" || name == "Dispute" {
			continue // asking twice changes nothing
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var warm atomic.Bool
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if warm.CompareAndSwap(false, true) {
					says(200, pi("requires_payment_method", ""))(w, r)
					return
				}
				hangUp(w, r)
			})
			p := provider(t, s.URL)
			_, err := p.Intent(t.Context(), "pi_1")
			require.NoError(t, err)

			verdict := faulted(t, call(t.Context(), p))
			require.Equal(t, checkout.FaultUnknown, verdict.Fault)
			require.Len(t, s.seen(), 2, "the question that warmed the connection, and one send")
		})
	}
}

// TestNotSentMeansThatNothingLeft holds the only errors that may free an
// attempt without a word from Stripe.
func TestNotSentMeansThatNothingLeft(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		t.Run(name+"/refused connection", func(t *testing.T) {
			t.Parallel()
			// A port that nobody is given by chance, as a just closed one may be.
			err := call(t.Context(), provider(t, "http://127.0.0.1:1"))
			require.Equal(t, checkout.FaultNotSent, faulted(t, err).Fault)
			var dial *net.OpError
			require.ErrorAs(t, err, &dial)
		})
		t.Run(name+"/no TLS where it was expected", func(t *testing.T) {
			t.Parallel()
			s := serve(t, says(200, pi("succeeded", "")))
			verdict := faulted(t, call(t.Context(), provider(t, strings.Replace(s.URL, "http", "https", 1))))
			require.Equal(t, checkout.FaultNotSent, verdict.Fault)
			require.Empty(t, s.seen())
		})
		t.Run(name+"/context that had ended", func(t *testing.T) {
			t.Parallel()
			s := serve(t, says(200, pi("succeeded", "")))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			err := call(ctx, provider(t, s.URL))
			require.Equal(t, checkout.FaultNotSent, faulted(t, err).Fault)
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, s.seen())
		})
	}
}

// TestDeadlineInMidCallIsUnknown: the request is at Stripe, whatever our
// context says by then.
func TestDeadlineInMidCallIsUnknown(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := &manual{t.Context(), make(chan struct{})}
			s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				ctx.end()
				<-r.Context().Done() // until the caller hangs up
			})
			err := call(ctx, provider(t, s.URL))
			verdict := faulted(t, err)
			require.Equal(t, checkout.FaultUnknown, verdict.Fault)
			require.Zero(t, verdict.HTTPStatus)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Len(t, s.seen(), 1)
		})
	}
	t.Run("in the middle of the answer", func(t *testing.T) {
		t.Parallel()
		ctx := &manual{t.Context(), make(chan struct{})}
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			says(200, pi("succeeded", "")[:40])(w, r)
			w.(http.Flusher).Flush()
			ctx.end()
			<-r.Context().Done()
		})
		_, err := confirm(ctx, provider(t, s.URL))
		require.Equal(t, checkout.FaultUnknown, faulted(t, err).Fault)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// manual is a context whose deadline passes when a test says so.
type manual struct {
	context.Context
	ended chan struct{}
}

func (m *manual) end()                        { close(m.ended) }
func (m *manual) Deadline() (time.Time, bool) { return time.Time{}, false }
func (m *manual) Done() <-chan struct{}       { return m.ended }
func (m *manual) Err() error {
	select {
	case <-m.ended:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestConcurrentCallsKeepTheirConnections: a busy shop pays for no handshake
// after the first round.
func TestConcurrentCallsKeepTheirConnections(t *testing.T) {
	t.Parallel()
	const workers = 64
	var opened atomic.Int64
	var arrived atomic.Pointer[sync.WaitGroup]
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := arrived.Load()
		all.Done()
		all.Wait() // every call is under way at once
		says(200, pi("succeeded", ""))(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	p := provider(t, s.URL)
	for range 2 {
		all := &sync.WaitGroup{}
		all.Add(workers)
		arrived.Store(all)
		var done sync.WaitGroup
		errs := make([]error, workers)
		for i := range workers {
			done.Go(func() { _, errs[i] = confirm(t.Context(), p) })
		}
		done.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
	require.EqualValues(t, workers, opened.Load())
}

// TestWrapSeesEachRequestOnce: tracing goes around the transport and changes
// nothing of the promises.
func TestWrapSeesEachRequestOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, says(200, pi("succeeded", "")))
	var sent atomic.Int64
	p, err := stripepay.New(stripepay.Config{SecretKey: "sk_test_1", Base: s.URL, Wrap: func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			sent.Add(1)
			require.Nil(t, r.GetBody)
			return next.RoundTrip(r)
		})
	}})
	require.NoError(t, err)
	_, err = confirm(t.Context(), p)
	require.NoError(t, err)
	require.EqualValues(t, 1, sent.Load())
}

// TestHTTP2IsNotSpoken: it has retries of its own.
func TestHTTP2IsNotSpoken(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
			return
		}
		says(200, pi("succeeded", ""))(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	p, err := stripepay.New(stripepay.Config{SecretKey: "sk_test_1", Base: s.URL, Wrap: func(next http.RoundTripper) http.RoundTripper {
		next.(*http.Transport).TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		return next
	}})
	require.NoError(t, err)
	_, err = confirm(t.Context(), p)
	require.NoError(t, err)
}

// TestSDKTellsNobody: it would print undecodable answers, client secrets
// included, and report the times of earlier calls to Stripe. Not parallel: it
// borrows the standard outputs.
func TestSDKTellsNobody(t *testing.T) {
	printed, err := os.CreateTemp(t.TempDir(), "printed")
	require.NoError(t, err)
	defer printed.Close()
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = printed, printed
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()

	var told []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		told = append(told, r.Header.Values("X-Stripe-Client-Telemetry")...)
		if len(r.Header.Values("Idempotency-Key")) == 0 {
			says(200, pi("succeeded", ""))(w, r)
			return
		}
		says(502, "<html>"+secret)(w, r)
	})
	p := provider(t, s.URL)
	for range 2 {
		_, err = p.Intent(t.Context(), "pi_1")
		require.NoError(t, err)
	}
	_, err = confirm(t.Context(), p)
	require.Error(t, err)

	require.Empty(t, told)
	text, err := os.ReadFile(printed.Name())
	require.NoError(t, err)
	require.Empty(t, string(text))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
