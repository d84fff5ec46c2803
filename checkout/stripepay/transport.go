package stripepay

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"
)

const (
	// idleConns keeps a connection for each call of a busy shop. The default
	// is 2 a host, and every further call would pay for a new handshake.
	idleConns = 64
	// idleTimeout is short, so that we rarely write on a connection that the
	// other side is just closing: such a POST has an unknown outcome.
	idleTimeout = 30 * time.Second
	// maxCall is only a safety net, the SDK's own figure: every call of the
	// checkout has a shorter deadline in its context.
	maxCall = 80 * time.Second
	// maxAnswer is far above what Stripe sends. What is longer is cut, cannot
	// be decoded, and so is unknown.
	maxAnswer = 4 << 20
)

// exchange is what the transport saw of one call. It is kept apart from the
// SDK's error, which holds neither the status of an undecodable answer nor
// whether the request ever got a connection.
type exchange struct {
	ctx context.Context
	// connected is true once the request was given a connection, so that bytes
	// of it may have been written. False proves that none were, which is the
	// only thing that may be called not sent. Later signs (WroteHeaders, a
	// count of bytes) prove nothing by their absence: net/http writes in a
	// goroutine that may go on after the call has returned.
	connected bool
	err       error // of the transport, when there was no answer
	status    int
	replayed  bool
	requestID string
}

type exchangeKey struct{}

// context is the caller's, with the exchange in it for the transport to fill.
func (x *exchange) context() context.Context {
	return context.WithValue(x.ctx, exchangeKey{}, x)
}

// newHTTPClient gives a client that sends each POST once.
func newHTTPClient(wrap func(http.RoundTripper) http.RoundTripper) *http.Client {
	var next http.RoundTripper = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        idleConns,
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     idleTimeout,
		// HTTP/2 repeats requests by rules of its own (GOAWAY, REFUSED_STREAM).
		// Without this line it is off only as a side effect of DialContext.
		Protocols: http1(),
	}
	if wrap != nil {
		next = wrap(next)
	}
	return &http.Client{
		Transport: &once{next},
		Timeout:   maxCall,
		// A redirected POST would be a second request, with the secret key, to
		// whoever the answer names.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// once sends a POST once, and notes in the call's exchange what it saw.
type once struct {
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o *once) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, errors.New("a call without an exchange")
	}
	// A list asks for several pages under one context; the last one counts.
	*x = exchange{ctx: x.ctx}
	sent := r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { x.connected = true },
	}))
	if r.Method != http.MethodGet {
		// When a reused connection dies under a request with an Idempotency-Key
		// and a GetBody, net/http sends it again: the checkout would count one
		// confirm where Stripe sees two.
		sent.GetBody = nil
	}
	answer, err := o.next.RoundTrip(sent)
	if err != nil {
		x.err = err
		return nil, err
	}
	x.status = answer.StatusCode
	x.replayed = answer.Header.Get("Idempotent-Replayed") == "true"
	x.requestID = printable(answer.Header.Get("Request-Id"))
	answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	return answer, nil
}
