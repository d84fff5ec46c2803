package migrations_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"payonce/migrations"
	"payonce/migrations/dbtest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func versions(t *testing.T, conn *pgx.Conn) []int64 {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT version_id FROM goose_db_version WHERE version_id > 0 ORDER BY id")
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return list
}

func TestUp(t *testing.T) {
	t.Parallel()

	t.Run("MigratesOnceWhenThreeProgramsStartAtOnce", func(t *testing.T) {
		t.Parallel()
		url := dbtest.NewEmptyURL(t)
		conn := connect(t, url)
		require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrPending)

		release := migrating(t, url)
		done := make(chan error, 3)
		for range cap(done) {
			go func() { done <- migrations.Up(t.Context(), url) }()
		}
		waitUntil(t, conn, "SELECT count(*) = 3 "+waitingSQL)
		require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrPending)
		release()
		for range cap(done) {
			require.NoError(t, <-done)
		}

		require.NoError(t, migrations.Check(t.Context(), conn))
		var want []int64
		for version := int64(1); version <= migrations.Version(); version++ {
			want = append(want, version)
		}
		require.Equal(t, want, versions(t, conn))
	})

	t.Run("CreatesTheLedgerFirst", func(t *testing.T) {
		t.Parallel()
		conn := connect(t, dbtest.NewURL(t))
		var keys int
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM idempotency_keys").Scan(&keys))
		require.Zero(t, keys)
		require.Equal(t, int64(1), versions(t, conn)[0])
	})

	t.Run("ChangesNothingTheSecondTime", func(t *testing.T) {
		t.Parallel()
		url := dbtest.NewURL(t)
		conn := connect(t, url)
		before := versions(t, conn)
		require.NoError(t, migrations.Up(t.Context(), url))
		require.Equal(t, before, versions(t, conn))
	})

	t.Run("RefusesADatabaseThatIsNewer", func(t *testing.T) {
		t.Parallel()
		url := dbtest.NewURL(t)
		conn := connect(t, url)
		_, err := conn.Exec(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES ($1, true)", migrations.Version()+1)
		require.NoError(t, err)
		require.ErrorIs(t, migrations.Up(t.Context(), url), migrations.ErrNewer)
		require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrNewer)
	})

	t.Run("EndsWithItsContextWhileAnotherMigrates", func(t *testing.T) {
		t.Parallel()
		url := dbtest.NewEmptyURL(t)
		conn := connect(t, url)
		migrating(t, url)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- migrations.Up(ctx, url) }()
		waitUntil(t, conn, "SELECT count(*) = 1 "+waitingSQL)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.ErrorIs(t, migrations.Check(t.Context(), conn), migrations.ErrPending)
	})
}

// waitingSQL selects the sessions that have asked for the migrations' lock.
const waitingSQL = `FROM pg_stat_activity
	WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'SELECT pg_try_advisory_lock%'`

// migrating holds the migrations' lock, as a program does that migrates, until
// it is released or the test ends. The number is goose's own.
func migrating(t *testing.T, url string) (release func()) {
	t.Helper()
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock(4097083626)")
	require.NoError(t, err)
	return func() { require.NoError(t, conn.Close(t.Context())) }
}

// waitUntil polls a question to the database until the answer is yes.
func waitUntil(t *testing.T, conn *pgx.Conn, question string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for yes := false; !yes; {
		require.NoError(t, conn.QueryRow(ctx, question).Scan(&yes), question)
	}
}

func TestCheckTellsADatabaseThatIsBehind(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.NewURL(t))
	_, err := conn.Exec(t.Context(), "DELETE FROM goose_db_version WHERE version_id = $1", migrations.Version())
	require.NoError(t, err)
	err = migrations.Check(t.Context(), conn)
	require.ErrorIs(t, err, migrations.ErrPending)
	require.ErrorContains(t, err, "shop migrate")
}

func TestMigrationsAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	next := 2
	for _, entry := range entries {
		var number int
		if n, _ := fmt.Sscanf(entry.Name(), "%05d_", &number); n == 1 {
			require.Equal(t, next, number, entry.Name())
			next++
		}
	}
	require.Equal(t, int64(next-1), migrations.Version())
}
