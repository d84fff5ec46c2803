package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/idempotency/retry"
)

// answer is one answer of a scripted server; its zero value breaks the line.
type answer struct {
	status     int
	retryAfter string
	problem    string
	body       string
}

// server gives its answers in turn, the last one for ever, and notes the keys.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []string
	bodies []string
}

func serve(t *testing.T, answers ...answer) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.keys, s.bodies = append(s.keys, r.Header.Get("Idempotency-Key")), append(s.bodies, string(body))
		a := answers[min(len(s.keys), len(answers))-1]
		s.mu.Unlock()
		if a.status == 0 {
			panic(http.ErrAbortHandler)
		}
		if a.retryAfter != "" {
			w.Header().Set("Retry-After", a.retryAfter)
		}
		if a.problem != "" {
			w.Header().Set("Content-Type", "application/problem+json")
			a.body = a.problem
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.keys...)
}

// pauses notes what the client waits for, instead of waiting.
type pauses struct {
	mu   sync.Mutex
	list []time.Duration
}

func (p *pauses) wait(_ context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, d)
	return nil
}

func TestDo(t *testing.T) {
	t.Parallel()
	const busy = `{"code":"provider_busy","safe_new_key":true,"payment_key":"key_next"}`
	const unknown = `{"code":"outcome_unknown","safe_new_key":false}`

	for name, test := range map[string]struct {
		answers []answer
		status  int
		sends   int
	}{
		"AnswerAtOnce":           {[]answer{{status: 201}}, 201, 1},
		"LostAnswer":             {[]answer{{}, {}, {status: 201}}, 201, 3},
		"FirstCopyStillRuns":     {[]answer{{status: 409, retryAfter: "1"}, {status: 201}}, 201, 2},
		"ConflictThatStands":     {[]answer{{status: 409}}, 409, 1},
		"UnknownOutcome":         {[]answer{{status: 503, retryAfter: "2", problem: unknown}, {status: 201}}, 201, 2},
		"BusyProvider":           {[]answer{{status: 503, retryAfter: "1", problem: busy}, {status: 201}}, 201, 2},
		"TooMany":                {[]answer{{status: 429}, {status: 201}}, 201, 2},
		"GatewaysPage":           {[]answer{{status: 502, body: "<html>"}, {status: 201}}, 201, 2},
		"DeclineIsAnAnswer":      {[]answer{{status: 402, problem: busy}}, 402, 1},
		"MistakeIsNotRepeated":   {[]answer{{status: 400}}, 400, 1},
		"KeyOfAnotherRequest":    {[]answer{{status: 422}}, 422, 1},
		"RedirectIsNotFollowed":  {[]answer{{status: 303}}, 303, 1},
		"ServerErrorIsNoOutcome": {[]answer{{status: 500}, {status: 500}, {status: 402}}, 402, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := serve(t, test.answers...), &pauses{}
			client := retry.Client{Pause: p.wait}
			got, err := client.Do(t.Context(), retry.Request{URL: s.URL, Key: "one key", Body: []byte("the same")})
			require.NoError(t, err)
			require.Equal(t, test.status, got.Status)
			require.Equal(t, test.sends, got.Sends)
			require.Len(t, s.sent(), test.sends)
			for i, key := range s.sent() {
				require.Equal(t, `"one key"`, key, "the same key each time")
				require.Equal(t, "the same", s.bodies[i])
			}
			for i, a := range test.answers[:test.sends-1] {
				if a.retryAfter != "" {
					require.Equal(t, a.retryAfter+"s", p.list[i].String(), "the server's word")
				} else {
					require.LessOrEqual(t, p.list[i], 10*time.Second)
				}
			}
		})
	}

	t.Run("GivingUpIsUnknownAndKeepsTheKey", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer{status: 503, problem: unknown})
		over := errors.New("the time is over")
		turns := 0
		client := retry.Client{Pause: func(context.Context, time.Duration) error {
			if turns++; turns == 3 {
				return over
			}
			return nil
		}}
		_, err := client.Do(t.Context(), retry.Request{URL: s.URL, Key: "one key"})
		require.ErrorIs(t, err, retry.ErrUnknown)
		require.ErrorIs(t, err, over)
		var u *retry.UnknownError
		require.ErrorAs(t, err, &u)
		require.Equal(t, "one key", u.Key)
		require.Equal(t, 3, u.Sends)
		require.Equal(t, 503, u.Last.Status)
	})

	t.Run("GivingUpAfterNothingHappenedIsThatAnswer", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer{status: 503, problem: busy})
		client := retry.Client{Pause: func(context.Context, time.Duration) error { return context.DeadlineExceeded }}
		got, err := client.Do(t.Context(), retry.Request{URL: s.URL, Key: "one key"})
		require.NoError(t, err)
		key, safe := got.SafeNewKey()
		require.True(t, safe)
		require.Equal(t, "key_next", key)
	})

	// A refusal is about its own send. Whoever made a new key after one, with an
	// earlier send still on its way, would refund or order twice.
	t.Run("ALostSendIsNotForgotten", func(t *testing.T) {
		t.Parallel()
		const overloaded = `{"code":"overloaded","safe_new_key":true}`
		const refused = `{"code":"no_session","safe_new_key":true,"payment_key":"key_next"}`
		const declined = `{"code":"card_declined","safe_new_key":true,"payment_key":"key_next"}`
		lost, running := answer{}, answer{status: 409, retryAfter: "1", problem: `{"code":"request_in_progress","safe_new_key":false}`}
		for name, test := range map[string]struct {
			answers []answer // and then the time is over
			unknown bool
			safe    bool
		}{
			"ThenOverloadedUntilTheTimeIsUp":     {[]answer{lost, {status: 503, problem: overloaded}}, true, false},
			"RunningThenOverloaded":              {[]answer{running, {status: 503, problem: overloaded}}, true, false},
			"UnknownThenOverloaded":              {[]answer{{status: 503, problem: unknown}, {status: 503, problem: overloaded}}, true, false},
			"ThenNoSession":                      {[]answer{lost, {status: 401, problem: refused}}, true, false},
			"ThenOverloadedThenForbidden":        {[]answer{lost, {status: 503, problem: overloaded}, {status: 403, problem: refused}}, true, false},
			"GatewaysPageThenNotFound":           {[]answer{{status: 502, body: "<html>"}, {status: 404, problem: refused}}, true, false},
			"ThenTooLarge":                       {[]answer{lost, {status: 413, problem: refused}}, true, false},
			"ThenTheKeyOfAnotherRequest":         {[]answer{lost, {status: 422, problem: refused}}, false, false},
			"ThenDeclined":                       {[]answer{lost, {status: 402, problem: declined}}, false, true},
			"ThenBusyProviderUntilTheTimeIsUp":   {[]answer{lost, {status: 503, problem: busy}}, false, true},
			"ThenBusyThenOverloaded":             {[]answer{lost, {status: 503, problem: busy}, {status: 503, problem: overloaded}}, false, true},
			"ThenBusyThenLostThenOverloaded":     {[]answer{lost, {status: 503, problem: busy}, lost, {status: 503, problem: overloaded}}, true, false},
			"NoneLostAndOverloadedIsSafe":        {[]answer{{status: 503, problem: overloaded}}, false, true},
			"NoneLostAndNoSessionIsSafe":         {[]answer{{status: 503, problem: overloaded}, {status: 401, problem: refused}}, false, true},
			"ThenAConflictThatStandsIsItsAnswer": {[]answer{lost, {status: 409}}, false, false},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, turns := serve(t, test.answers...), 0
				client := retry.Client{Pause: func(context.Context, time.Duration) error {
					if turns++; turns >= len(test.answers) {
						return context.DeadlineExceeded
					}
					return nil
				}}
				got, err := client.Do(t.Context(), retry.Request{URL: s.URL, Key: "one key"})
				require.Len(t, s.sent(), len(test.answers))
				if test.unknown {
					var u *retry.UnknownError
					require.ErrorAs(t, err, &u)
					require.Equal(t, "one key", u.Key)
					require.Equal(t, test.answers[len(test.answers)-1].status, u.Last.Status, "the last answer is there to be read")
					_, safe := u.Last.SafeNewKey()
					require.False(t, safe)
					return
				}
				require.NoError(t, err)
				key, safe := got.SafeNewKey()
				require.Equal(t, test.safe, safe)
				require.True(t, safe || key == "", "a key that is not safe is not named")
			})
		}
	})

	t.Run("NoSendIsHiddenFromTheCaller", func(t *testing.T) {
		t.Parallel()
		for name, body := range map[string]string{"WithABody": "the same", "Empty": ""} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, p := serve(t, answer{status: 429}, answer{}, answer{status: 401}), &pauses{} // the second breaks a kept connection
				client := retry.Client{Pause: p.wait}
				_, err := client.Do(t.Context(), retry.Request{URL: s.URL, Key: "one key", Body: []byte(body)})
				var u *retry.UnknownError
				require.ErrorAs(t, err, &u)
				require.Equal(t, 3, u.Sends)
				require.Len(t, s.sent(), 3)
				require.Equal(t, []string{body, body, body}, s.bodies)
			})
		}
	})

	t.Run("OnlyAnAnswerMakesANewKeySafe", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer{status: 201, body: busy}) // not a problem: what it says is data
		client := retry.Client{}
		got, err := client.Do(t.Context(), retry.Request{URL: s.URL, Key: "one key"})
		require.NoError(t, err)
		_, safe := got.SafeNewKey()
		require.False(t, safe)
	})

	t.Run("EndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer{})
		ctx, cancel := context.WithCancel(t.Context())
		client := retry.Client{Pause: func(context.Context, time.Duration) error { cancel(); return nil }}
		_, err := client.Do(ctx, retry.Request{URL: s.URL, Key: "one key"})
		require.ErrorIs(t, err, retry.ErrUnknown)
		require.ErrorIs(t, err, context.Canceled)
	})

	t.Run("BadKeysAreNotSent", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer{status: 201})
		for _, key := range []string{"", strings.Repeat("k", 256), "é", "a\nb"} {
			_, err := (&retry.Client{}).Do(t.Context(), retry.Request{URL: s.URL, Key: key})
			require.Error(t, err)
			require.NotErrorIs(t, err, retry.ErrUnknown)
		}
		require.Empty(t, s.sent())
	})

	t.Run("QuotesAreEscaped", func(t *testing.T) {
		t.Parallel()
		s := serve(t, answer{status: 201})
		_, err := (&retry.Client{}).Do(t.Context(), retry.Request{URL: s.URL, Key: `a"b\c`})
		require.NoError(t, err)
		require.Equal(t, []string{`"a\"b\\c"`}, s.sent())
	})
}

func ExampleClient_Do() {
	// A server that loses its first answer.
	lost := false
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !lost {
			lost = true
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(http.StatusCreated)
	}))
	defer shop.Close()

	key := retry.NewKey() // once per purchase; keep it before the first send
	var client retry.Client
	answer, err := client.Do(context.Background(), retry.Request{
		URL: shop.URL + "/orders/ord_1/payments", Key: key,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   []byte(`{"payment_method":"pm_card_visa"}`),
	})
	if errors.Is(err, retry.ErrUnknown) {
		fmt.Println("not known yet: send the same again later, with", key)
		return
	}
	fmt.Println(answer.Status, "after", answer.Sends, "sends, replayed:", answer.Replayed)
	// Output: 201 after 2 sends, replayed: true
}
