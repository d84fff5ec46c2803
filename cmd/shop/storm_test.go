package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// standIn answers a storm as a shop does, and breaks the promise that a test
// wants broken.
type standIn struct {
	mu     sync.Mutex
	orders int
	paid   map[string]int // payments that were answered, by order
	breaks string
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	say := func(status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
	id := strings.Split(strings.TrimPrefix(r.URL.Path, "/orders/"), "/")[0]
	switch {
	case r.URL.Path == "/":
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "someone"})
		say(200, `{"courses":[{"slug":"free","amount":0},{"slug":"dear","amount":4900,"currency":"usd"}]}`)
	case r.URL.Path == "/orders":
		s.orders++
		say(201, fmt.Sprintf(`{"id":"ord_%d","payment_key":"key_%d"}`, s.orders, s.orders))
	case strings.HasSuffix(r.URL.Path, "/payments"):
		s.paid[id]++
		if s.paid[id] > 1 && s.breaks != "owners" {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		body := `{"status":"succeeded"}`
		if s.paid[id] > 1 && s.breaks == "bytes" {
			body = `{"status": "succeeded"}`
		}
		say(201, body)
	case strings.HasSuffix(r.URL.Path, "/charges"):
		charges := map[string]int{"charges": 2, "no charge": 0}
		n, ok := charges[s.breaks]
		if !ok {
			n = 1
		}
		if s.breaks == "no demo" {
			say(404, `{}`)
			return
		}
		say(200, fmt.Sprintf(`{"charges":%d}`, n))
	default:
		order := map[string]any{"status": "paid", "payments": []map[string]string{{"status": "succeeded"}}}
		switch s.breaks {
		case "unpaid":
			order = map[string]any{"status": "open", "payments": []map[string]string{}}
		case "payments":
			order["payments"] = []map[string]string{{"status": "succeeded"}, {"status": "succeeded"}}
		}
		body, _ := json.Marshal(order)
		say(200, string(body))
	}
}

// TestStormSeesWhatIsBroken: each invariant that a storm claims to hold is one
// that it can see broken.
func TestStormSeesWhatIsBroken(t *testing.T) {
	t.Parallel()
	for breaks, says := range map[string]string{
		"charges":   "2 charges at Stripe",
		"no charge": "the order is paid, with 0 charges at Stripe",
		"bytes":     "two answers under one key",
		"owners":    "the key had several owners at once",
		"unpaid":    "the answer says paid, and the order is open",
		"payments":  "with 2 payments that succeeded",
	} {
		t.Run(breaks, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&standIn{breaks: breaks, paid: map[string]int{}})
			defer server.Close()
			var out, errs bytes.Buffer
			code := run(context.Background(), []string{"storm", "--url", server.URL, "--orders", "3", "--copies", "4"}, &out, &errs)
			require.Equal(t, 1, code, out.String())
			require.Contains(t, out.String(), says)
			require.NotContains(t, out.String(), "holds")
			require.Equal(t, "shop: an invariant is broken\n", errs.String())
		})
	}
	for breaks, says := range map[string]string{
		"nothing": "Every invariant holds", "no demo": "Every invariant that can be seen from here holds",
	} {
		t.Run(breaks, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&standIn{breaks: breaks, paid: map[string]int{}})
			defer server.Close()
			var out, errs bytes.Buffer
			require.Zero(t, run(context.Background(), []string{"storm", "--url", server.URL, "--orders", "3"}, &out, &errs), errs.String())
			require.Contains(t, out.String(), says)
			require.Contains(t, out.String(), "answers    24: 3 fresh, 21 replayed")
		})
	}
}

// TestStormRefuses: what cannot work is one line that says what to do.
func TestStormRefuses(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for args, says := range map[string]string{
		"--orders 0":            "--orders is 0: set 1 to 100000",
		"--copies 1001":         "--copies is 1001: set 1 to 1000",
		"--at-once=-1":          "--at-once is -1: set 1 to 1000",
		"--for 0s":              "--for is 0s: set more than nothing",
		"--url shop":            `--url is "shop": set a scheme and a host`,
		"--url " + closed.URL:   "start the shop first (make run), or name it with --url",
		"--url " + "http://x/y": "set a scheme and a host",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			require.Equal(t, 1, run(context.Background(), append([]string{"storm"}, strings.Fields(args)...), &out, &errs))
			require.Contains(t, errs.String(), says)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"))
		})
	}
}
