package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"payonce/idempotency/racelab"
	"payonce/migrations/dbtest"
	"payonce/web"
)

// run is a run as a program reads it.
type run struct {
	ID         string           `json:"id"`
	Experiment string           `json:"experiment"`
	Status     string           `json:"status"`
	StartedAt  string           `json:"started_at"`
	Progress   map[string]any   `json:"progress"`
	Result     *racelab.Result  `json:"result"`
	Claims     []map[string]any `json:"claims"`
	Problem    string           `json:"problem"`
}

// onDatabase is a shop with the real lab.
func onDatabase(t *testing.T) (*shop, *pgx.ConnConfig) {
	t.Helper()
	database, err := pgx.ParseConfig(dbtest.NewURL(t))
	require.NoError(t, err)
	s := open(t, func(c *web.Config) { c.Lab = racelab.New(database) })
	t.Cleanup(s.server.Close)
	return s, database
}

func withLab(t *testing.T, lab *handLab) *shop {
	t.Helper()
	s := open(t, func(c *web.Config) { c.Lab = lab })
	t.Cleanup(s.server.Close)
	return s
}

// runs asks for a run as a program does.
func (s *shop) runs(experiment, settings string, changes ...with) answer {
	s.t.Helper()
	return s.send(request(http.MethodPost, "/lab/"+experiment+"/runs", settings, append([]with{header("Content-Type", "application/json")}, changes...)))
}

// shown follows a run's page until the run has ended.
func (s *shop) shown(path string) string {
	s.t.Helper()
	_, id, _ := strings.Cut(path, "?run=")
	s.send(get("/lab/runs/" + id + "/events")) // ends with the run
	page := s.send(get(path, fromBrowser)).page()
	require.NotContains(s.t, page, `id="lab-run"`)
	return page
}

// TestLabMeasures: experiments, asked for by pages and by programs, on a real
// PostgreSQL.
func TestLabMeasures(t *testing.T) {
	t.Parallel()
	s, database := onDatabase(t)
	for _, row := range []struct {
		name, settings string
		shows          []string
	}{
		{"check-then-insert", `{"workers":8,"trials":2}`, []string{"$392.00", "8 charged", "charge 8", "$49.00", "1 charged, 7 replayed", "Ledger.Do"}},
		{"claim", `{"workers":4,"trials":1,"window":"none"}`, []string{"1 charged, 3 replayed"}},
		{"same-key-another-body", `{"trials":1}`, []string{"$9,000 again", "422"}},
		{"begin-on-the-pool", `{"trials":1}`, []string{"surviving rows", "B, A"}},
	} {
		var r run
		got := s.runs(row.name, row.settings)
		require.Equal(t, 201, got.status, string(got.body))
		got.decode(&r)
		require.Equal(t, "done", r.Status)
		require.True(t, r.Result.OK, row.name)
		require.NotEmpty(t, r.Result.Variants)
		require.NotContains(t, string(got.body), ":null", "a list is empty at most")
		require.Equal(t, "/lab/"+row.name+"?run="+r.ID, got.header.Get("Location"))
		page := s.send(get(got.header.Get("Location"), fromBrowser)).page()
		for _, text := range row.shows {
			require.Contains(t, page, text, row.name)
		}
		require.NotContains(t, page, "Not as expected")
		if row.name == "check-then-insert" {
			require.Regexp(t, `INSERT [0-9.]+ to [0-9.]+ ms, waited for [0-9, ]+ until`, page, "who waited for whom, in words")
			require.Contains(t, page, `<rect class="waiting"`, "and drawn")
			require.Regexp(t, `SELECT [0-9.]+ to [0-9.]+ ms found no row; held by the lab`, page)
			require.Equal(t, 2*(7+6)+(7+6)+1, strings.Count(page, `href="#extra"`), "seven too many, or six, in each trial, again in the drawing of the first, and in the legend")
		}
	}

	page := s.send(get("/lab", fromBrowser)).page()
	require.Contains(t, page, "8 charges; $392.00", "the first claim, as it was measured")
	require.Contains(t, page, "not run yet", "and the others were not")

	conn, err := pgx.ConnectConfig(t.Context(), database)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	var left, charges int
	require.NoError(t, conn.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'racelab%'), (SELECT count(*) FROM public.payments)`).Scan(&left, &charges))
	require.Zero(t, left, "a run drops what it made")
	require.Zero(t, charges, "and touches nothing of the shop")
}

// TestLabInABrowser: a form, a redirect, a page. No script is needed.
func TestLabInABrowser(t *testing.T) {
	t.Parallel()
	s, _ := onDatabase(t)
	before := s.send(get("/lab/check-then-insert", fromBrowser)).page()
	require.Contains(t, before, "Nothing is measured yet")
	require.Contains(t, before, "Expected: 8 charged, $392.00")
	got := s.send(form("/lab/check-then-insert/runs", "workers=2&trials=1&window=barrier&handler_ms=20"))
	require.Equal(t, 303, got.status)
	path := got.header.Get("Location")
	require.Regexp(t, `^/lab/check-then-insert\?run=run_\w+$`, path)
	page := s.shown(path)
	require.Contains(t, page, "$98.00")
	require.Contains(t, page, "2 charged")
	require.Contains(t, page, "1 charged, 1 replayed")
	require.Contains(t, page, `<option value="2" selected>`)
	require.Contains(t, s.send(get("/lab", fromBrowser)).page(), "run with other settings, which do not answer it")

	// The address is anybody's.
	s.cookie = s.newCustomer()
	require.Contains(t, s.send(get(path, fromBrowser)).page(), "$98.00")
}

// TestLabNeedsARoleThatMayCreateSchemas: otherwise it says so, and how to mend
// it.
func TestLabNeedsARoleThatMayCreateSchemas(t *testing.T) {
	t.Parallel()
	_, database := onDatabase(t)
	owner, err := pgx.ConnectConfig(t.Context(), database)
	require.NoError(t, err)
	role := "guest_of_" + database.Database
	_, err = owner.Exec(t.Context(), fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD 'guest'`, pgx.Identifier{role}.Sanitize()))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = owner.Exec(t.Context(), "DROP ROLE "+pgx.Identifier{role}.Sanitize())
	})
	guest := database.Copy()
	guest.User, guest.Password = role, "guest"
	s := open(t, func(c *web.Config) { c.Lab = racelab.New(guest) })
	t.Cleanup(s.server.Close)

	p := s.runs("check-then-insert", `{"trials":1}`).problem()
	require.Equal(t, 503, p.Status)
	require.Equal(t, "lab_not_permitted", p.Code)
	require.Contains(t, p.Detail, "CREATE on the database")
	page := s.shown(s.send(form("/lab/claim/runs", "trials=1")).header.Get("Location"))
	require.Contains(t, page, "The lab may not use this database.")
}

// TestLabIsOffWhereNobodyAskedForIt: without it there is no route and no entry.
func TestLabIsOffWhereNobodyAskedForIt(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]func(*web.Config){
		"outside demo mode": func(c *web.Config) { c.Demo = false },
		"without a lab":     func(c *web.Config) { c.Lab = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, off)
			require.NotContains(t, s.send(get("/", fromBrowser)).page(), "Race lab")
			for _, r := range s.server.Routes() {
				require.NotContains(t, r, "/lab")
			}
			require.Equal(t, "not_found", s.send(get("/lab")).problem().Code)
			require.Equal(t, "not_found", s.send(get("/lab/claim")).problem().Code)
		})
	}
	require.Contains(t, open(t).send(get("/", fromBrowser)).page(), `<a href="/lab">Race lab</a>`)
}
