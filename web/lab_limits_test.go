package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/idempotency/racelab"
)

// TestLabRefuses: what is out of bounds is named, and nothing runs.
func TestLabRefuses(t *testing.T) {
	t.Parallel()
	lab := &handLab{}
	s := withLab(t, lab)
	for _, row := range []struct{ experiment, settings, field, says string }{
		{"check-then-insert", `{"workers":1}`, "workers", "from 2 to 32"},
		{"check-then-insert", `{"workers":100000}`, "workers", "from 2 to 32"},
		{"check-then-insert", `{"workers":1e300}`, "workers", "from 2 to 32"},
		{"check-then-insert", `{"workers":-8}`, "workers", "from 2 to 32"},
		{"check-then-insert", `{"workers":8.5}`, "workers", "whole number"},
		{"check-then-insert", `{"workers":"8"}`, "workers", "whole number"},
		{"check-then-insert", `{"trials":0}`, "trials", "from 1 to 20"},
		{"check-then-insert", `{"trials":21}`, "trials", "from 1 to 20"},
		{"check-then-insert", `{"window":"ajar"}`, "window", "barrier, none or handler"},
		{"check-then-insert", `{"window":7}`, "window", "must be text"},
		{"check-then-insert", `{"window":"handler","handler_ms":1001}`, "handler_ms", "from 0 to 1000"},
		{"check-then-insert", `{"variants":"claim"}`, "variants", "no such member"},
		{"check-then-insert", `[]`, "body", "one JSON object"},
		{"same-key-another-body", `{"workers":8}`, "workers", "has its own workers: 2"},
		{"same-key-another-body", `{"window":"none"}`, "window", "no barrier"},
	} {
		p := s.runs(row.experiment, row.settings).problem()
		require.Equal(t, []any{400, "invalid_request", row.field}, []any{p.Status, p.Code, p.Field}, row.settings)
		require.Contains(t, p.Detail, row.says, row.settings)
	}
	page := s.send(form("/lab/check-then-insert/runs", "workers=64"))
	require.Equal(t, 400, page.status)
	require.Contains(t, page.page(), "Choose a whole number from 2 to 32.")
	require.Equal(t, 415, s.runs("claim", `{}`, header("Content-Type", "text/plain")).status)
	require.Equal(t, "cross_site", s.runs("claim", `{}`, header("Sec-Fetch-Site", "cross-site")).problem().Code)
	require.Equal(t, "no_session", s.runs("claim", `{}`, header("Cookie", "none=none")).problem().Code)
	require.Empty(t, lab.names(), "nothing runs")
}

// TestLabKnowsWhatWasMeant: an experiment that does not exist is a page with
// those that resemble it.
func TestLabKnowsWhatWasMeant(t *testing.T) {
	t.Parallel()
	s := withLab(t, &handLab{})
	p := s.send(get("/lab/check-than-insert")).problem()
	require.Equal(t, []any{404, "no_experiment"}, []any{p.Status, p.Code})
	require.Contains(t, p.Detail, "check-then-insert")
	got := s.send(get("/lab/check-than-insert", fromBrowser))
	require.Equal(t, 404, got.status)
	require.Contains(t, got.page(), `href="/lab/check-then-insert"`)
	require.Contains(t, s.send(get("/lab/%3Cscript%3E", fromBrowser)).page(), "&lt;script&gt;")
	require.Equal(t, "no_experiment", s.runs("nothing-like-it", `{}`).problem().Code)
	require.Equal(t, "no_experiment", s.send(get("/lab/"+strings.Repeat("x", 4000))).problem().Code)
}

// TestLabRunsOneAtATime: one for each visitor, a few in all, and never more
// connections than the lab may hold.
func TestLabRunsOneAtATime(t *testing.T) {
	t.Parallel()
	lab := &handLab{hold: make(chan struct{}), started: make(chan string, 10)}
	s := withLab(t, lab)
	start := func(cookie *http.Cookie, settings string) chan answer {
		ended := make(chan answer, 1)
		other := *s
		other.cookie = cookie
		go func() { ended <- other.runs("check-then-insert", settings) }()
		return ended
	}
	first := start(s.cookie, `{"workers":8}`)
	require.Equal(t, "check-then-insert", lab.await(t))

	p := s.runs("claim", `{}`)
	require.Equal(t, []any{409, "run_in_progress"}, []any{p.status, p.problem().Code})
	require.Equal(t, "2", p.header.Get("Retry-After"))
	again := s.send(form("/lab/claim/runs", ""))
	require.Equal(t, 409, again.status)
	require.Contains(t, again.page(), "See the run under way")
	require.Equal(t, 409, s.send(form("/lab/runs", "")).status, "a run over all is a run")

	// 32 workers do not fit beside it, 8 do; and a fourth run never.
	other := *s
	other.cookie = s.newCustomer()
	busy := other.runs("check-then-insert", `{"workers":32}`)
	require.Equal(t, []any{503, "lab_busy"}, []any{busy.status, busy.problem().Code})
	require.Equal(t, "3", busy.header.Get("Retry-After"))
	second := start(s.newCustomer(), `{"workers":8}`)
	lab.await(t)
	third := start(s.newCustomer(), `{"workers":2}`)
	lab.await(t)
	require.Equal(t, "lab_busy", other.runs("check-then-insert", `{"workers":2}`).problem().Code)

	close(lab.hold)
	for _, ended := range []chan answer{first, second, third} {
		require.Equal(t, 201, (<-ended).status)
	}
	require.Equal(t, 201, s.runs("claim", `{"workers":32}`).status, "what was held is free again")
}

// TestLabForgetsTheOldestRuns: an address holds while the newest two hundred
// have it, and then says that the run is gone.
func TestLabForgetsTheOldestRuns(t *testing.T) {
	t.Parallel()
	s := withLab(t, &handLab{})
	path := func() string { return s.runs("claim", `{"trials":1}`).header.Get("Location") }
	first := path()
	require.Equal(t, 200, s.send(get(first)).status)
	second := path()
	for range 199 {
		path()
	}
	gone := s.send(get(first))
	require.Equal(t, []any{404, "run_gone"}, []any{gone.status, gone.problem().Code})
	page := s.send(get(first, fromBrowser))
	require.Equal(t, 404, page.status)
	require.Contains(t, page.page(), "This run is gone.")
	require.Contains(t, page.page(), `href="/lab/claim"`)
	require.Equal(t, 200, s.send(get(second)).status)

	_, id, _ := strings.Cut(second, "?run=")
	for _, wrong := range []string{"/lab/check-then-insert?run=" + id, "/lab?run=" + id, "/lab/runs/none/events"} {
		require.Equal(t, "run_gone", s.send(get(wrong)).problem().Code, wrong)
	}
}

// TestLabEndsWithTheShop: a run under way is given up, whoever waits is told,
// and the shop closes only when the run has cleaned up.
func TestLabEndsWithTheShop(t *testing.T) {
	t.Parallel()
	lab := &handLab{hold: make(chan struct{}), started: make(chan string, 1)}
	s := withLab(t, lab)
	ended := make(chan answer, 1)
	go func() { ended <- s.runs("claim", `{}`) }()
	lab.await(t)
	s.server.Close()
	lab.mu.Lock()
	require.Equal(t, 1, lab.ended, "the shop waits for the run")
	lab.mu.Unlock()
	p := (<-ended).problem()
	require.Equal(t, "lab_busy", p.Code)
	require.Contains(t, p.Detail, "closing")
	require.Contains(t, s.runs("claim", `{}`).problem().Detail, "closing")
	require.Equal(t, 200, s.send(get("/lab", fromBrowser)).status, "what was measured can still be read")
}

// TestLabSaysWhyThereIsNoResult: each error of the lab has its answer.
func TestLabSaysWhyThereIsNoResult(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err        error
		status     int
		code, says string
		retryAfter string
	}{
		{racelab.ErrBusy, 503, "lab_busy", "no connections left", "5"},
		{racelab.ErrNotPermitted, 503, "lab_not_permitted", "CREATE", ""},
		{racelab.ErrDeadline, 503, "lab_busy", "given up", "30"},
		{context.Canceled, 503, "lab_busy", "closing", "10"},
		{fmt.Errorf("the disk is full"), 500, "internal", "logged", "1"},
	} {
		s := withLab(t, &handLab{fails: map[string]error{"claim": fmt.Errorf("running claim: %w", row.err)}})
		got := s.runs("claim", `{}`)
		p := got.problem()
		require.Equal(t, []any{row.status, row.code}, []any{p.Status, p.Code}, row.err)
		require.Contains(t, p.Detail, row.says)
		require.NotContains(t, p.Detail, "disk", "strangers are not told")
		require.Equal(t, row.retryAfter, got.header.Get("Retry-After"), row.err)

		path := s.send(form("/lab/claim/runs", "")).header.Get("Location")
		require.Contains(t, s.shown(path), row.says)
		var e struct {
			Experiment, Expected any
			Run                  run
		}
		s.send(get(path)).decode(&e)
		require.Equal(t, "failed", e.Run.Status)
		require.Contains(t, e.Run.Problem, row.says)
	}
}

// TestLabStreamsProgress: an open page is told how far the run is, and when it
// has ended.
func TestLabStreamsProgress(t *testing.T) {
	t.Parallel()
	lab := &handLab{hold: make(chan struct{}), started: make(chan string, 1)}
	s := withLab(t, lab)
	url := served(t, s)
	path := s.send(form("/lab/claim/runs", "trials=3")).header.Get("Location")
	lab.await(t)
	require.Contains(t, s.send(get(path, fromBrowser)).page(), "Look again", "without a script, too")
	_, id, _ := strings.Cut(path, "?run=")
	w := watch(t, url+"/lab/runs/"+id+"/events", s.cookie)
	require.Equal(t, "text/event-stream", w.answer.Header.Get("Content-Type"))
	for {
		e, ok := w.next()
		require.True(t, ok, w.lines.Err())
		if strings.Contains(e.data, `"done":1,"of":6,"now":"Claim it, trial 1 of 3"`) {
			break
		}
	}
	close(lab.hold)
	for e, ok := w.next(); e.name != "ended"; e, ok = w.next() {
		require.True(t, ok, w.lines.Err())
	}
	_, ok := w.next()
	require.False(t, ok, "the stream ends with the run")
	head := s.send(request(http.MethodHead, "/lab/runs/"+id+"/events", "", nil))
	require.Equal(t, 200, head.status)
}

// TestLabMeasuresAll: one press runs every experiment once, goes on past one
// that fails, and says which.
func TestLabMeasuresAll(t *testing.T) {
	t.Parallel()
	lab := &handLab{fails: map[string]error{"claim": fmt.Errorf("the disk is full")}}
	s := withLab(t, lab)
	got := s.send(request(http.MethodPost, "/lab/runs", `{}`, []with{header("Content-Type", "application/json")}))
	require.Equal(t, 201, got.status, string(got.body))
	var r run
	got.decode(&r)
	require.Len(t, r.Claims, len(racelab.Claims()))
	var all []string
	for _, e := range racelab.All() {
		all = append(all, e.Name)
	}
	require.Equal(t, all, lab.names(), "each once, in teaching order")
	page := s.send(get(got.header.Get("Location"), fromBrowser)).page()
	require.Contains(t, page, "Not every experiment could be run.")
	require.Contains(t, page, "Without a result: claim.")

	busy := &handLab{fails: map[string]error{all[1]: racelab.ErrBusy}}
	s = withLab(t, busy)
	s.shown(s.send(form("/lab/runs", "")).header.Get("Location"))
	require.Equal(t, all[:2], busy.names(), "where the next would end alike, it stops")
}

// TestLabClaimsAreAnsweredByRunsWithTheirSettings: whoever tries two workers, or
// luck, does not change what the index says of eight.
func TestLabClaimsAreAnsweredByRunsWithTheirSettings(t *testing.T) {
	t.Parallel()
	s := withLab(t, &handLab{})
	var first run
	s.runs("check-then-insert", `{}`).decode(&first)
	for _, other := range []string{`{"workers":2}`, `{"workers":32}`, `{"window":"none"}`} {
		require.Equal(t, 201, s.runs("check-then-insert", other).status)
		var index struct {
			Experiments any              `json:"experiments"`
			Claims      []map[string]any `json:"claims"`
		}
		s.send(get("/lab")).decode(&index)
		require.Equal(t, first.ID, index.Claims[0]["run"], other)
	}
}
