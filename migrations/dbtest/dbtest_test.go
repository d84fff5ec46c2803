package dbtest_test

import (
	"testing"

	"payonce/migrations"
	"payonce/migrations/dbtest"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

func count(t *testing.T, pool *pgxpool.Pool, table string) int {
	t.Helper()
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}

func TestNew(t *testing.T) {
	t.Parallel()

	t.Run("GivesAMigratedDatabase", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, migrations.Check(t.Context(), dbtest.New(t)))
	})

	t.Run("GivesEachTestItsOwn", func(t *testing.T) {
		t.Parallel()
		mine, theirs := dbtest.New(t), dbtest.New(t)
		_, err := mine.Exec(t.Context(), "INSERT INTO events (id, type, status) VALUES ('evt_1', 'charge.succeeded', 'applied')")
		require.NoError(t, err)
		require.Equal(t, 1, count(t, mine, "events"))
		require.Zero(t, count(t, theirs, "events"))
	})

	t.Run("TakesTheSizeOfThePool", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, int32(8), dbtest.New(t).Config().MaxConns)
		require.Equal(t, int32(2), dbtest.New(t, dbtest.MaxConns(2)).Config().MaxConns)
	})
}

func TestNewEmptyURLGivesADatabaseWithoutTables(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), dbtest.NewEmptyURL(t))
	require.NoError(t, err)
	defer pool.Close()
	require.Zero(t, count(t, pool, "pg_tables WHERE schemaname = 'public'"))
}
