package web_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/web"
)

// stream is one page that is kept up to date.
type stream struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Scanner
	leave  context.CancelFunc
}

// sent is one server-sent event.
type sent struct{ name, id, data string }

// served puts the shop behind a server whose timeouts are shorter than any
// stream.
func served(t *testing.T, s *shop) string {
	t.Helper()
	server := httptest.NewUnstartedServer(s.server)
	server.Config.ReadTimeout, server.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	server.Config.RegisterOnShutdown(s.server.Close)
	server.Start()
	t.Cleanup(func() {
		s.server.Close()
		server.Close()
	})
	return server.URL
}

func watch(t *testing.T, url string, cookie *http.Cookie, changes ...with) *stream {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(leave)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	r.AddCookie(cookie)
	for _, change := range changes {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{t, answer, lines, leave}
}

// next reads one event, or gives false at the end of the stream.
func (s *stream) next() (e sent, ok bool) {
	s.t.Helper()
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data += value + "\n"
		case "":
			if e.name != "" {
				return e, true
			}
		}
	}
	return sent{}, false
}

// keys reads on to the next content.
func (s *stream) keys() sent {
	s.t.Helper()
	for {
		e, ok := s.next()
		require.True(s.t, ok, "the stream has ended: %v", s.lines.Err())
		if e.name == "keys" {
			return e
		}
	}
}

func markOf(t *testing.T, page string) string {
	t.Helper()
	return regexp.MustCompile(`data-mark="(\w+)"`).FindStringSubmatch(page)[1]
}

// TestLedgerEvents: an open page is told what changes, and nothing else.
func TestLedgerEvents(t *testing.T) {
	t.Parallel()

	t.Run("TellWhatChangesBeyondTheServersTimeouts", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		url := served(t, &s.shop)
		page := s.send(get("/ledger", fromBrowser)).page()
		w := watch(t, url+"/ledger/events?after="+markOf(t, page), s.cookie)
		require.Equal(t, "text/event-stream", w.answer.Header.Get("Content-Type"))
		require.Equal(t, "no-store", w.answer.Header.Get("Cache-Control"))

		order := s.ordered(slug)
		first := w.keys()
		require.Contains(t, first.data, "POST /orders<", "the page had the empty ledger already")
		require.Equal(t, 200, s.send(get("/ledger", fromBrowser)).status)
		require.Equal(t, markOf(t, s.send(get("/ledger", fromBrowser)).page()), first.id, "the page and the stream name a content alike")

		require.Equal(t, 201, s.send(post("/orders/"+order.ID+"/payments", withVisa, key(order.PaymentKey))).status)
		for e := w.keys(); !strings.Contains(e.data, "Charged once"); {
			e = w.keys()
		}
		require.NotContains(t, first.data, order.PaymentKey)
	})

	t.Run("BeginWithWhatTheClientDoesNotHave", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		url := served(t, &s.shop) + "/ledger/events"
		s.ordered(slug)
		had := watch(t, url, s.cookie).keys()
		again := watch(t, url+"?after=older", s.cookie, header("Last-Event-Id", had.id))
		s.ordered("stripe-in-production")
		require.NotEqual(t, had.id, again.keys().id, "what it had is not sent again")
	})

	t.Run("AreOfOneAccount", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		url := served(t, &s.shop) + "/ledger/events"
		order := s.ordered(slug)
		require.Contains(t, watch(t, url, s.cookie).keys().data, order.ID)
		require.NotContains(t, watch(t, url, s.newCustomer()).keys().data, order.ID)
		stranger := s.send(request(http.MethodGet, "/ledger/events", "", []with{header("Cookie", "none=none")}))
		require.Equal(t, "no_session", stranger.problem().Code)
	})

	t.Run("EndWhenTheShopCloses", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		w := watch(t, served(t, &s.shop)+"/ledger/events", s.cookie)
		w.keys()
		s.server.Close()
		for ok := true; ok; _, ok = w.next() {
		}
		require.NoError(t, w.lines.Err(), "in order")
		require.Equal(t, "overloaded", s.send(get("/ledger/events")).problem().Code)
		require.Equal(t, 200, s.send(get("/ledger")).status, "everything else goes on")
	})

	t.Run("AnswerHEAD", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		got := s.send(request(http.MethodHead, "/ledger/events", "", nil))
		require.Equal(t, 200, got.status)
		require.Equal(t, "text/event-stream", got.header.Get("Content-Type"))
	})
}

// polled is a ledger that is told of each question about changes.
type polled struct {
	noKeys
	asked   chan []string
	asking  atomic.Int32
	overlap atomic.Bool
}

func (p *polled) Marks(ctx context.Context, accounts ...string) (map[string]string, error) {
	if p.asking.Add(1) > 1 {
		p.overlap.Store(true)
	}
	defer p.asking.Add(-1)
	select {
	case p.asked <- accounts:
	case <-ctx.Done():
	}
	return map[string]string{}, nil
}

// TestOnePollerServesAllWhoWatch: however many pages are open, the ledger is
// asked one question at a time, about all accounts together.
func TestOnePollerServesAllWhoWatch(t *testing.T) {
	t.Parallel()
	ledger := &polled{asked: make(chan []string)}
	s := open(t, func(c *web.Config) { c.Ledger = ledger })
	url := served(t, s) + "/ledger/events"
	other := s.newCustomer()
	for _, cookie := range []*http.Cookie{s.cookie, s.cookie, s.cookie, other, other} {
		watch(t, url, cookie)
	}
	deadline := time.After(30 * time.Second)
	for together := 0; together < 2; {
		select {
		case accounts := <-ledger.asked:
			if len(accounts) == 2 {
				together++
			} else {
				require.Len(t, accounts, 1, "the pages came one after the other")
			}
		case <-deadline:
			require.Fail(t, "the accounts are not asked about together")
		}
	}
	require.False(t, ledger.overlap.Load(), "two questions at once")
}
