package racelab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"payonce/idempotency"
	"payonce/migrations/dbtest"
)

// hopeless is a deadline for what must come.
const hopeless = 20 * time.Second

func schemas(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'racelab%' ORDER BY 1`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

func connect(t *testing.T, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// hanging is an experiment whose workers wait for what never comes, in the
// middle of a transaction.
func hanging(started chan<- struct{}) *Experiment {
	return &Experiment{Name: "hanging", Workers: manyWorkers, Trials: fewTrials, Variants: []Variant{{
		Name: "hanging", tables: keysTable,
		work: func(ctx context.Context, w *worker) (Answer, error) {
			return Answer{}, w.transaction(ctx, begin, func() error {
				if _, err := w.statement(ctx, insertKey, theKey, ""); err != nil {
					return err
				}
				if started != nil && w.count("started", 1) == w.round.n {
					close(started)
				}
				return w.await(ctx, "never")
			})
		},
	}}}
}

func TestARunLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	config := parse(t, dbtest.NewURL(t))
	lab, conn := New(config), connect(t, config)
	run := func(ctx context.Context, e *Experiment) error {
		s, err := e.settle(Settings{Trials: 1})
		require.NoError(t, err)
		_, err = lab.run(ctx, e, s, nil)
		return err
	}

	require.NoError(t, run(t.Context(), claimByIndex()))
	require.Empty(t, schemas(t, conn), "after a run")

	canceled, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() { <-started; cancel() }()
	require.ErrorIs(t, run(canceled, hanging(started)), context.Canceled)
	require.Empty(t, schemas(t, conn), "after a cancel")

	limited := New(config)
	limited.limit = 200 * time.Millisecond
	_, err := limited.run(t.Context(), hanging(nil), Settings{Workers: 2, Trials: 1, Window: Barrier}, nil)
	require.ErrorIs(t, err, ErrDeadline)
	require.Empty(t, schemas(t, conn), "after the deadline")

	impatient := New(config)
	impatient.trial = 200 * time.Millisecond
	_, err = impatient.run(t.Context(), hanging(nil), Settings{Workers: 2, Trials: 1, Window: Barrier}, nil)
	require.ErrorIs(t, err, ErrDeadline)
	require.ErrorContains(t, err, "for one trial")
	require.Empty(t, schemas(t, conn), "after a trial's deadline")

	slow := hanging(nil)
	slow.Variants[0].work = func(ctx context.Context, w *worker) (Answer, error) {
		_, err := w.statement(ctx, "SET statement_timeout = 1; SELECT pg_sleep(60)")
		return Answer{}, err
	}
	err = run(t.Context(), slow)
	require.ErrorIs(t, err, ErrDeadline)
	require.ErrorContains(t, err, "for one statement")
	require.Empty(t, schemas(t, conn), "after a statement's deadline")

	panicking := hanging(nil)
	panicking.Variants[0].work = func(ctx context.Context, w *worker) (Answer, error) {
		if w.n == 2 {
			panic("on purpose")
		}
		return Answer{}, w.await(ctx, "never")
	}
	require.ErrorContains(t, run(t.Context(), panicking), "worker 2 panicked: on purpose")
	require.Empty(t, schemas(t, conn), "after a panic")

	failing := hanging(nil)
	failing.Variants[0].work = func(ctx context.Context, w *worker) (Answer, error) {
		if w.n == 1 {
			return Answer{}, errors.New("no answer at all")
		}
		return Answer{}, w.await(ctx, "never")
	}
	require.ErrorContains(t, run(t.Context(), failing), "worker 1: no answer at all")
	require.Empty(t, schemas(t, conn), "after a failure")
}

// TestTheShopsTablesAreNotTouched: a shop in the same database has the very key
// that the lab's workers race for.
func TestTheShopsTablesAreNotTouched(t *testing.T) {
	t.Parallel()
	config := parse(t, dbtest.NewURL(t))
	conn := connect(t, config)
	_, err := conn.Exec(t.Context(), `
		INSERT INTO idempotency_keys (scope, key, operation, request_hash, status, owner, lease_until)
		VALUES ($1, $2, $3, sha256('shop'), 'in_progress', 'shop', now())`, theAccount, theKey, payments)
	require.NoError(t, err)
	state := func() string {
		var text string
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT string_agg(format('%s=%s', tablename, (xpath('/row/n/text()',
				query_to_xml(format('SELECT count(*) || min(t::text) AS n FROM public.%I t', tablename), true, true, '')))[1]::text), ' ' ORDER BY tablename)
			  FROM pg_tables WHERE schemaname = 'public'`).Scan(&text))
		return text
	}
	before := state()
	for _, name := range []string{"check-then-insert", "claim", "retention", "completer", "lease-and-fence"} {
		result, err := New(config).Run(t.Context(), name, Settings{Trials: 1}, nil)
		require.NoError(t, err)
		requireFigures(t, result)
	}
	require.Contains(t, before, "idempotency_keys=1")
	require.Equal(t, before, state())
}

func TestSchemasOfDeadRunsAreSweptAndThoseOfLiveOnesKept(t *testing.T) {
	t.Parallel()
	config := parse(t, dbtest.NewURL(t))
	conn := connect(t, config)
	const dead, alive = prefix + "00000000000000aa", prefix + "00000000000000bb"
	for _, name := range []string{dead, alive, "racelab_of_somebody_else"} {
		_, err := conn.Exec(t.Context(), "CREATE SCHEMA "+name)
		require.NoError(t, err)
	}
	live := config.Copy()
	live.RuntimeParams["application_name"] = alive
	connect(t, live)
	_, err := New(config).Run(t.Context(), "key-scope", Settings{Trials: 1}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{alive, "racelab_of_somebody_else"}, schemas(t, conn))
}

func TestSettingsOutsideTheBoundsAreRefused(t *testing.T) {
	t.Parallel()
	lab := New(&pgx.ConnConfig{}) // nothing is connected to
	for name, c := range map[string]struct {
		experiment string
		s          Settings
		err        error
		says       string
	}{
		"no workers":            {"claim", Settings{Workers: -1}, ErrBounds, "-1 workers: choose from 2 to 32"},
		"one worker":            {"claim", Settings{Workers: 1}, ErrBounds, "1 workers"},
		"absurdly many workers": {"claim", Settings{Workers: 1_000_000}, ErrBounds, "choose from 2 to 32"},
		"a cast of its own":     {"completer", Settings{Workers: 8}, ErrBounds, "the experiment has its own 2"},
		"too many trials":       {"claim", Settings{Trials: 21}, ErrBounds, "21 trials: choose from 1 to 20"},
		"a negative trial":      {"claim", Settings{Trials: -3}, ErrBounds, "-3 trials"},
		"a slow handler":        {"claim", Settings{Window: Handler, Handler: time.Minute}, ErrBounds, "from 0 to 1000"},
		"a negative handler":    {"claim", Settings{Window: Handler, Handler: -1}, ErrBounds, "milliseconds of handler"},
		"another window":        {"claim", Settings{Window: "open"}, ErrBounds, "choose barrier, none or handler"},
		"no barrier to remove":  {"completer", Settings{Window: None}, ErrNoWindow, "no barrier"},
		"an unknown variant":    {"claim", Settings{Variants: []string{"clam"}}, ErrUnknown, "did you mean claim"},
		"an unknown experiment": {"clam", Settings{}, ErrUnknown, `no experiment is called "clam": did you mean claim`},
		"nothing like it":       {"xyzzy", Settings{}, ErrUnknown, `no experiment is called "xyzzy"`},
		"a shortened name":      {"serial", Settings{}, ErrUnknown, `"serial"`},
		"the beginning of one":  {"chek-then", Settings{}, ErrUnknown, "check-then-insert"},
		"hostile":               {"'; DROP SCHEMA public --", Settings{}, ErrUnknown, "no experiment"},
	} {
		_, err := lab.Run(t.Context(), c.experiment, c.s, nil)
		require.ErrorIs(t, err, c.err, name)
		require.ErrorContains(t, err, c.says, name)
	}
}

// role makes a role that may do little, and gives the configuration of its
// sessions.
func role(t *testing.T, conn *pgx.Conn, config *pgx.ConnConfig, rights string) *pgx.ConnConfig {
	t.Helper()
	name := "racelab_test_" + rand.Text()[:12]
	name = fmt.Sprintf("%q", name)
	_, err := conn.Exec(t.Context(), `CREATE ROLE `+name+` LOGIN PASSWORD 'racelab' `+rights)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), `DROP OWNED BY `+name+`; DROP ROLE `+name)
		require.NoError(t, err)
		_ = conn.Close(context.Background())
	})
	restricted := config.Copy()
	restricted.User, restricted.Password = name[1:len(name)-1], "racelab"
	return restricted
}

// own is a connection that outlives the cleanups of a test.
func own(t *testing.T, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	return conn
}

func TestARoleThatMayNotCreateSchemasIsToldSo(t *testing.T) {
	t.Parallel()
	config := parse(t, dbtest.NewURL(t))
	conn := own(t, config)
	_, err := New(role(t, conn, config, "")).Run(t.Context(), "claim", Settings{}, nil)
	require.ErrorIs(t, err, ErrNotPermitted)
	require.ErrorContains(t, err, "GRANT CREATE ON DATABASE")
}

func TestADatabaseWithoutAConnectionLeftIsBusy(t *testing.T) {
	t.Parallel()
	config := parse(t, dbtest.NewURL(t))
	conn := own(t, config)
	restricted := role(t, conn, config, "CONNECTION LIMIT 4")
	_, err := conn.Exec(t.Context(), fmt.Sprintf(`GRANT CREATE ON DATABASE %s TO %q`, pgx.Identifier{config.Database}.Sanitize(), restricted.User))
	require.NoError(t, err)

	_, err = New(restricted).Run(t.Context(), "claim", Settings{Workers: 8}, nil)
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, "try fewer workers")
	require.Empty(t, schemas(t, conn))

	// Two of the lab's and two workers fit.
	require.Eventually(t, func() bool { // the server notices a moment later that a session has ended
		result, err := New(restricted).Run(t.Context(), "claim", Settings{Workers: 2, Trials: 1}, nil)
		return err == nil && result.OK
	}, hopeless, 50*time.Millisecond)
}

// TestChargesHaveNoUniqueIndexOnTheKey: the lab measures what handlers do, and
// not what a second constraint saves them from.
func TestChargesHaveNoUniqueIndexOnTheKey(t *testing.T) {
	t.Parallel()
	config := parse(t, dbtest.NewURL(t))
	conn := connect(t, config)
	_, err := conn.Exec(t.Context(), chargesTable+idempotency.Schema[:0])
	require.NoError(t, err)
	var indexes int
	require.NoError(t, conn.QueryRow(t.Context(), `
		SELECT count(*) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
		 WHERE i.indrelid = 'charges'::regclass AND i.indisunique AND a.attname = 'key'`).Scan(&indexes))
	require.Zero(t, indexes)
}
