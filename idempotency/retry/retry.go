// Package retry is the client's half of an idempotency key, for programs: it
// sends one request, with one key, until its outcome is known.
//
// The key is made once per intent and kept before the first send (NewKey, or a
// row of your own). Do then sends the very same request again, with the same
// key, whenever the answer is lost, or says that the first one still runs
// (409 with Retry-After), that the server is busy (429, 503), or nothing that
// can be relied on (any other 5xx). It never makes a new key: a key made inside
// a retry loop is no key. Only an answer can say that a new one is safe
// (Response.SafeNewKey), and after a lost answer only one that speaks of the
// earlier sends too.
//
// If it has to give up first, the outcome is unknown, which is an error of its
// own: neither success nor failure. Keep the key, and send the same later.
package retry

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The defaults of Client.
const (
	DefaultFor     = 2 * time.Minute
	DefaultTimeout = 60 * time.Second
	firstPause     = 200 * time.Millisecond
	longestPause   = 10 * time.Second
	// longestWait bounds a server's Retry-After; a longer one is the caller's
	// to wait for.
	longestWait = time.Minute
	// maxAnswer is the most that is read of an answer.
	maxAnswer = 4 << 20
)

// ErrUnknown: the request was sent, and nobody can say what became of it. As an
// *UnknownError, by Do.
var ErrUnknown = errors.New("the outcome is unknown")

// UnknownError is ErrUnknown, with what is needed to find out later.
type UnknownError struct {
	// Key is the one to send again.
	Key string
	// Sends is how many times it was sent.
	Sends int
	// Last is the last answer, which does not say what became of every send; nil
	// if there was none.
	Last *Response
	// Err is the last error of the transport, or of the context.
	Err error
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%s after %d sends", ErrUnknown, e.Sends)
	if e.Last != nil {
		text += fmt.Sprintf(", the last answer being %d", e.Last.Status)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives ErrUnknown and the cause.
func (e *UnknownError) Unwrap() []error { return []error{ErrUnknown, e.Err} }

// Client sends requests with keys. The zero value works.
type Client struct {
	// HTTP sends. Optional. Default value is a client that waits
	// DefaultTimeout for an answer and follows no redirect.
	HTTP *http.Client
	// For is how long Do goes on. Optional. Default value DefaultFor.
	For time.Duration
	// Pause waits between two sends, and returns early with the context's
	// error. Optional. Default value waits on a timer.
	Pause func(ctx context.Context, d time.Duration) error
}

// Request is one request, sent as it is each time.
type Request struct {
	Method string // POST, if empty
	URL    string
	// Key is the idempotency key, in plain text: 1 to 255 bytes of printable
	// ASCII. It is sent as an RFC 8941 string.
	Key string
	// Header is sent along; Idempotency-Key is set by Do.
	Header http.Header
	Body   []byte
}

// Response is an answer that says what became of the request.
type Response struct {
	Status   int
	Header   http.Header
	Body     []byte
	Replayed bool // it was given to an earlier copy of this request
	Sends    int  // how many times the request was sent

	// doubt is true if an earlier send may still do, or have done, what was
	// asked for: its answer was lost, or did not say.
	doubt bool
}

// SafeNewKey tells whether another attempt, with another key, cannot do the
// same thing twice; and which key the server has for it, if it names one (the
// member payment_key of a problem). It needs the server's word (safe_new_key),
// about every send: a refusal of the last one, such as 401, or 503 overloaded,
// says nothing about one before it whose answer was lost.
func (r *Response) SafeNewKey() (key string, safe bool) {
	p := r.problem()
	if !p.SafeNewKey || r.doubt && !r.settles() {
		return "", false
	}
	return p.PaymentKey, true
}

// settles is true for an answer that is about the key, and so about every send
// with it: the stored outcome without money (402), or that the key was released
// because nothing that was sent under it was carried out.
func (r *Response) settles() bool {
	code := r.problem().Code
	return r.Status == http.StatusPaymentRequired || code == "provider_busy" || code == "provider_refused"
}

type problem struct {
	Code       string `json:"code"`
	SafeNewKey bool   `json:"safe_new_key"`
	PaymentKey string `json:"payment_key"`
}

func (r *Response) problem() (p problem) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/problem+json") {
		_ = json.Unmarshal(r.Body, &p) // not a problem: nothing is safe
	}
	return p
}

// NewKey makes a key of 130 random bits. Make it once per intent, and keep it
// before the first send.
func NewKey() string { return rand.Text() }

// Do sends the request until its outcome is known, and returns that answer,
// whatever its status. It returns
//
//   - *UnknownError if the time is over or ctx ends first, unless the last
//     answer said that nothing happened (SafeNewKey), which is then returned;
//     and at once if a send whose answer was lost is followed by a refusal that
//     the same request would meet again, such as 401, and that says nothing
//     about the lost one;
//   - another error, before anything is sent, for a request that cannot be made.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	if err := check(r.Key); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(ctx, orDefault(c.For, DefaultFor))
	defer cancel()
	unknown, doubt := &UnknownError{Key: r.Key}, false
	for {
		req, err := c.request(limit, r)
		if err != nil {
			return nil, err
		}
		unknown.Sends++
		answer, err := c.send(req)
		unknown.Last, unknown.Err = answer, err
		if err == nil {
			answer.Sends, answer.doubt = unknown.Sends, doubt
			switch {
			case answer.final() && doubt && answer.refused():
				return nil, unknown
			case answer.final():
				return answer, nil
			}
			// An answer about the key ends the doubt; one that says that this send
			// did nothing adds none.
			doubt = !answer.problem().SafeNewKey || doubt && !answer.settles()
		} else {
			doubt = true
		}
		if err := c.pause(limit, wait(answer, unknown.Sends)); err != nil {
			if answer != nil {
				if _, safe := answer.SafeNewKey(); safe {
					return answer, nil
				}
			}
			unknown.Err = errors.Join(unknown.Err, err)
			return nil, unknown
		}
	}
}

// final is true for an answer that the same request will not change. A 409
// without Retry-After is a conflict that stands; with it, the first copy runs.
func (r *Response) final() bool {
	switch {
	case r.Status == http.StatusConflict:
		return r.Header.Get("Retry-After") == ""
	case r.Status == http.StatusTooManyRequests, r.Status == http.StatusRequestTimeout:
		return false
	}
	return r.Status < http.StatusInternalServerError
}

// refused is true for an answer given before the server looked the key up: it is
// about this send alone. 402, 409 and 422 are about the key.
func (r *Response) refused() bool {
	switch r.Status {
	case http.StatusPaymentRequired, http.StatusConflict, http.StatusUnprocessableEntity:
		return false
	}
	return r.Status >= http.StatusBadRequest
}

// wait is the server's Retry-After in seconds, or a pause that doubles, with
// full jitter, so that clients which failed together do not come back together.
func wait(answer *Response, sends int) time.Duration {
	if answer != nil {
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
			return min(time.Duration(seconds)*time.Second, longestWait)
		}
	}
	ceiling := min(firstPause<<min(sends-1, 10), longestPause)
	jitter, err := rand.Int(rand.Reader, big.NewInt(int64(ceiling)))
	if err != nil {
		return ceiling
	}
	return time.Duration(jitter.Int64()) + time.Millisecond
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	// A body that net/http does not know how to read again: else it would send a
	// keyed request a second time by itself when a kept connection dies, and that
	// loss would not be known here.
	req, err := http.NewRequestWithContext(ctx, method, r.URL, io.NopCloser(bytes.NewReader(r.Body)))
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(len(r.Body))
	for name, values := range r.Header {
		req.Header[name] = append([]string(nil), values...)
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(r.Key)
	req.Header.Set("Idempotency-Key", `"`+quoted+`"`)
	return req, nil
}

// send sends once. The whole answer must have come: half of one is a lost one.
func (c *Client) send(req *http.Request) (*Response, error) {
	client := c.HTTP
	if client == nil {
		client = &http.Client{
			Timeout:       DefaultTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return &Response{
		Status: answer.StatusCode, Header: answer.Header, Body: body,
		Replayed: answer.Header.Get("Idempotent-Replayed") == "true",
	}, nil
}

func (c *Client) pause(ctx context.Context, d time.Duration) error {
	if c.Pause != nil {
		if err := c.Pause(ctx, d); err != nil {
			return err
		}
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func check(key string) error {
	if key == "" || len(key) > 255 {
		return errors.New("retry: the key must be 1 to 255 bytes long")
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return errors.New("retry: the key must be printable ASCII")
		}
	}
	return nil
}

func orDefault(d, value time.Duration) time.Duration {
	if d == 0 {
		return value
	}
	return d
}
