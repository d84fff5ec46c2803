// Package dbtest gives each test a database of its own, already migrated: a
// clone of a template that is made once for all packages and runs. Tests may
// commit, lock, listen and break things, in parallel.
//
// The server is TEST_DATABASE_URL or DATABASE_URL where one is set, of which
// only new databases are touched; else a local PostgreSQL in a folder of its
// own (TEST_DATA_DIR, or beside the shop's), which stops a few seconds after the
// last test program has ended.
package dbtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Option changes the pool that New returns.
type Option func(*pgxpool.Config)

// MaxConns sets the size of the pool.
func MaxConns(n int32) Option {
	return func(c *pgxpool.Config) { c.MaxConns = n }
}

// maxConns is a pool's size where the test does not care: the shop's own default.
const maxConns = 8

// New returns a pool on a fresh migrated database. Both go away with the test,
// which fails if it has not given every connection back by then.
func New(t testing.TB, options ...Option) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(NewURL(t))
	if err != nil {
		t.Fatalf("dbtest: reading the database URL: %v", err)
	}
	config.MaxConns = maxConns
	for _, option := range options {
		option(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("dbtest: opening a pool: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool, patience) })
	return pool
}

// patience is how long connections may stay in use after the test: what runs in
// its background ends with its context, which has just ended.
const patience = 10 * time.Second

// closePool closes the pool. Close waits for connections that are in use, and
// a test that leaks one would hang here for ever.
func closePool(t testing.TB, pool *pgxpool.Pool, patience time.Duration) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Errorf("dbtest: the test has not given back %d connections", pool.Stat().AcquiredConns())
	}
}

// NewURL returns the URL of a fresh migrated database, which is dropped at the
// end of the test, open sessions or not.
func NewURL(t testing.TB) string {
	t.Helper()
	s := sharedServer(t)
	return s.lend(t, s.template)
}

// NewEmptyURL returns the URL of a fresh database without any table, which is
// dropped like NewURL's.
func NewEmptyURL(t testing.TB) string {
	t.Helper()
	return sharedServer(t).lend(t, "template0")
}

func sharedServer(t testing.TB) *server {
	t.Helper()
	s, err := shared(t.Context())
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	return s
}

// lend gives the test a database that is a clone of template.
func (s *server) lend(t testing.TB, template string) string {
	t.Helper()
	name, err := s.clone(t.Context(), template)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := s.drop(context.Background(), name); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return s.url(name)
}
