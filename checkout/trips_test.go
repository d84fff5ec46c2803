package checkout_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"payonce/migrations/dbtest"
)

// trips counts what a checkout sends to the database: a query or a batch is one
// round trip, once its statements are prepared.
type trips struct {
	mu       sync.Mutex
	counting bool
	sent     int
	commits  int
	prepared int
}

func (c *trips) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting, c.sent, c.commits, c.prepared = true, 0, 0, 0
}

func (c *trips) stop() (sent, commits int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting = false
	return c.sent, c.commits
}

func (c *trips) note(sent int, sql string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counting {
		return
	}
	c.sent += sent
	if strings.TrimSpace(sql) == "COMMIT" {
		c.commits++
	}
}

func (c *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.note(1, d.SQL)
	return ctx
}
func (c *trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.note(1, "")
	return ctx
}

func (c *trips) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	c.note(0, d.SQL)
}
func (c *trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// openTraced opens a shop whose one connection is traced.
func openTraced(t *testing.T, tracer pgx.QueryTracer) *shop {
	t.Helper()
	config, err := pgxpool.ParseConfig(dbtest.NewURL(t))
	require.NoError(t, err)
	config.MaxConns = 2
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return openOn(t, pool)
}
