package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// proxyStripe stands between a shop and Stripe. A call is two messages, the
// request and the answer.
func proxyStripe(l *line, stripe http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		switch l.pass(toStripe, r.Method+" "+withoutIDs(r.URL.Path)) {
		case isLost:
			panic(http.ErrAbortHandler)
		case isLast:
			l.kill()
		}
		// What was sent on is carried out although its sender is gone.
		r = r.WithContext(context.WithoutCancel(r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		stripe.ServeHTTP(answer, r)

		passage := l.pass(fromStripe, strconv.Itoa(answer.Code))
		if passage == isLost {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		if passage == isLast {
			_ = http.NewResponseController(w).Flush()
			l.kill()
		}
	})
}

var stripeID = regexp.MustCompile(`/[a-z]+_[A-Za-z0-9]{8,}`)

// withoutIDs makes two runs' calls of one kind equal.
func withoutIDs(path string) string { return stripeID.ReplaceAllString(path, "/*") }

// mailbox is a webhook endpoint that takes every event at once and keeps it:
// when the shop hears of it is for the test to decide.
type mailbox struct {
	secret string

	mu     sync.Mutex
	events []event
}

type event struct {
	id, kind, order string
	body            []byte
}

// newMailbox registers a mailbox at a Stripe, through Stripe's own API.
func newMailbox(t *testing.T, s *stripe) *mailbox {
	t.Helper()
	m := &mailbox{}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.secret = s.endpoint(t, server.URL)
	return m
}

// endpoint registers an address for all events, and returns the secret that they
// are signed with.
func (s *stripe) endpoint(t *testing.T, address string) string {
	t.Helper()
	form := url.Values{"url": {address}, "enabled_events[]": {"*"}, "api_version": {stripesim.APIVersion}}
	r, err := http.NewRequest(http.MethodPost, "http://"+s.addr+"/v1/webhook_endpoints", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.SetBasicAuth("sk_test_local", "")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := plainClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var made struct {
		Secret string `json:"secret"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&made))
	require.NotEmpty(t, made.Secret)
	return made.Secret
}

// ServeHTTP implements http.Handler.
func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var read struct {
		ID   string `json:"id"`
		Type string `json:"type"`
		Data struct {
			Object struct {
				Metadata struct {
					Order string `json:"order"`
				} `json:"metadata"`
			} `json:"object"`
		} `json:"data"`
	}
	if err != nil || json.Unmarshal(body, &read) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, event{read.ID, read.Type, read.Data.Object.Metadata.Order, body})
}

// find returns the event of a kind about an order, once Stripe has sent it.
func (m *mailbox) find(t testing.TB, kind, order string) (found event) {
	t.Helper()
	eventually(t, "Stripe has sent "+kind, func() bool {
		for _, e := range m.all() {
			if e.kind == kind && e.order == order {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

func (m *mailbox) all() []event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]event(nil), m.events...)
}

// deliver sends an event to a shop as Stripe does: signed at the time of
// sending.
func (m *mailbox) deliver(to *shop, e event) answer {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(m.secret))
	_, _ = fmt.Fprintf(mac, "%s.%s", at, e.body)
	r, err := http.NewRequest(http.MethodPost, to.url+"/webhooks/stripe", bytes.NewReader(e.body))
	if err != nil {
		return answer{err: err}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Stripe-Signature", "t="+at+",v1="+hex.EncodeToString(mac.Sum(nil)))
	got, err := plainClient.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	return answer{err: err, status: got.StatusCode, header: got.Header, body: string(body)}
}
