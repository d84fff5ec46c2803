package dbtest_test

import (
	"testing"

	"payonce/migrations"
	"payonce/migrations/dbtest"

	"github.com/stretchr/testify/require"
)

func TestNewGivesAMigratedDatabase(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	require.NoError(t, migrations.Check(t.Context(), pool))
}
