package idempotency

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// The schema refuses what no correct program writes.
func TestSchema(t *testing.T) {
	t.Parallel()

	t.Run("RefusesBadKeys", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustClaim(t, l, purchase("in progress", 4900))
		mustRecord(t, l, mustClaim(t, l, purchase("completed", 4900)))
		mustRelease(t, l, mustClaim(t, l, purchase("retryable", 4900)))
		for _, c := range []struct{ constraint, key, set string }{
			{"scope_length", "in progress", `scope = ''`},
			{"scope_length", "in progress", `scope = repeat('x', 256)`},
			{"scope_length", "in progress", `scope = repeat('é', 128)`}, // bytes, not characters
			{"key_length", "in progress", `key = ''`},
			{"key_length", "in progress", `key = repeat('x', 256)`},
			{"operation_length", "in progress", `operation = ''`},
			{"operation_length", "in progress", `operation = repeat('x', 513)`},
			{"hash_length", "in progress", `request_hash = 'short'`},
			{"counts", "in progress", `attempt = 0`},
			{"counts", "in progress", `takeovers = 1`},
			{"counts", "in progress", `takeovers = -1`},
			{"recovery_point", "in progress", `recovery_point = ''`},
			{"recovery_point", "in progress", `recovery_point = repeat('x', 65)`},
			{"status", "in progress", `status = 'failed', lease_until = NULL, completed_at = now()`},
			{"lease", "in progress", `lease_until = NULL`},
			{"lease", "completed", `lease_until = now()`},
			{"lease", "retryable", `lease_until = now()`},
			{"response", "in progress", `response_status = 201`},
			{"response", "in progress", `response_body = ''`},
			{"response", "retryable", `response_type = ''`},
			{"response", "completed", `response_status = NULL`},
			{"response", "completed", `response_type = NULL`},
			{"response", "completed", `response_body = NULL`},
			{"response_status", "completed", `response_status = 199`},
			{"response_status", "completed", `response_status = 600`},
			{"params", "completed", `params = 'kept'`},
			{"completed_at", "in progress", `completed_at = now()`},
			{"completed_at", "completed", `completed_at = NULL`},
			{"completed_at", "retryable", `completed_at = NULL`},
		} {
			_, err := d.direct.Exec(t.Context(), `UPDATE idempotency_keys SET `+c.set+` WHERE key = $1`, c.key)
			requireRefused(t, err, "23514", "idempotency_keys_"+c.constraint, c.set)
		}
		_, err := d.direct.Exec(t.Context(), `INSERT INTO idempotency_keys SELECT * FROM idempotency_keys WHERE key = 'completed'`)
		requireRefused(t, err, "23505", "idempotency_keys_pkey", "a second row")
		_, err = d.direct.Exec(t.Context(), `UPDATE key_history SET what = 'vanished'`)
		requireRefused(t, err, "23514", "key_history_what", "a word that nobody knows")
	})

	// Whoever's code is wrong about lengths gets an error and no row.
	t.Run("RefusesBadRequests", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		for name, spoil := range map[string]func(*Request){
			"no scope":        func(r *Request) { r.Scope = "" },
			"a long scope":    func(r *Request) { r.Scope = strings.Repeat("x", 256) },
			"no key":          func(r *Request) { r.Key = "" },
			"no operation":    func(r *Request) { r.Operation = "" },
			"a NUL":           func(r *Request) { r.Operation = "a\x00b" },
			"not valid UTF-8": func(r *Request) { r.Scope = "\xff" },
		} {
			req := purchase("k", 4900)
			spoil(&req)
			_, _, err := l.Claim(t.Context(), req, nil)
			require.Error(t, err, name)
			_, err = l.Do(t.Context(), req, placeOrder("k"))
			require.Error(t, err, name)
		}
		require.Zero(t, ask[int](d, `SELECT count(*) FROM idempotency_keys`))
		require.Zero(t, d.charges("k"))
	})

	// A path through every method runs every statement that stands in the code.
	// Each is prepared by the server, and finds its rows by an index.
	t.Run("EveryStatementIsPreparedAndFindsRowsByIndex", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		heard := &listener{}
		l := d.ledgerOn(d.pool(2, heard.hear), noWait)
		everyMethod(t, d, l)

		proxy, _ := newProxy(d, 1)
		cut := d.ledgerOn(d.pool(2, heard.hear, proxy.between))
		proxy.once("COMMIT", answerLost)
		mustClaim(t, cut, purchase("in doubt", 4900))

		for text, where := range literals(t) {
			require.True(t, heard.heard(text), "%s: never run: %s", where, text)
		}
		conn, err := d.direct.Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release()
		_, err = conn.Exec(t.Context(), `SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan`)
		require.NoError(t, err)
		defer func() { _, _ = conn.Exec(context.Background(), `RESET ALL`) }()
		for i, sql := range heard.all() {
			name := "s" + strconv.Itoa(i)
			statement, err := conn.Conn().Prepare(t.Context(), name, sql)
			require.NoError(t, err, sql)
			if !strings.Contains(sql, "idempotency_keys") {
				continue
			}
			nulls := strings.TrimSuffix(strings.Repeat("NULL,", len(statement.ParamOIDs)), ",")
			rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE `+name+`(`+nulls+`)`, pgx.QueryExecModeSimpleProtocol)
			require.NoError(t, err, sql)
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err, sql)
			require.NotContains(t, strings.Join(plan, "\n"), "Seq Scan", sql)
		}
	})

	// Behind a pooler that hands out a connection for a transaction, nothing may
	// be prepared.
	for name, mode := range map[string]pgx.QueryExecMode{
		"Exec": pgx.QueryExecModeExec, "SimpleProtocol": pgx.QueryExecModeSimpleProtocol, "CacheDescribe": pgx.QueryExecModeCacheDescribe,
	} {
		t.Run("WorksInMode"+name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			everyMethod(t, d, d.ledgerOn(d.pool(2, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }), noWait))
		})
	}
}

// everyMethod uses the ledger in every way.
func everyMethod(t *testing.T, d *database, l *Ledger) {
	t.Helper()
	ctx := context.Background()
	c := mustClaim(t, l, purchase("k", 4900))
	require.NoError(t, l.Hold(ctx, c, nothing))
	require.NoError(t, l.Checkpoint(ctx, c, "intent_created", func(*Tx) {}))
	mustRelease(t, l, c)
	c = mustClaim(t, l, purchase("k", 4900))
	require.Equal(t, Retaken, c.Origin)
	_, err := l.GiveUp(ctx, c, "called")
	require.NoError(t, err)
	d.lapse("k")
	zombie := c
	c = mustClaim(t, l, purchase("k", 4900))
	require.Equal(t, TakenOver, c.Origin)
	_, err = l.Record(ctx, zombie, recordPaid(zombie))
	require.ErrorIs(t, err, ErrInProgress)
	mustRecord(t, l, c)
	_, replay, err := l.Claim(ctx, purchase("k", 4900), nil)
	require.NoError(t, err)
	require.Equal(t, paid(3).Body, replay.Body)
	_, err = l.Do(ctx, purchase("local", 4900), placeOrder("local"))
	require.NoError(t, err)
	require.Equal(t, 1, d.charges("k"))
	eventually(t, "the replay is written", func() bool { return len(d.history("k")) == 8 })
	reading(t, l)
	d.age("k", "30 days")
	result, err := l.ReapOnce(ctx, Reap{Retention: MinRetention})
	require.NoError(t, err)
	completer(t, d, l)
	require.Equal(t, ReapResult{Keys: 1, History: 8}, result)
	_, err = l.Do(ctx, purchase("local", 900000), placeOrder("local"))
	require.ErrorIs(t, err, ErrKeyReused)
	require.Equal(t, 60*time.Second, l.lease)
}

func requireRefused(t *testing.T, err error, code, constraint, what string) {
	t.Helper()
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused, what)
	require.Equal(t, code, refused.Code, what)
	require.Equal(t, constraint, refused.ConstraintName, what)
}

// listener hears every statement that goes to the server.
type listener struct {
	mu         sync.Mutex
	statements []string
}

func (h *listener) hear(c *pgxpool.Config) { c.ConnConfig.Tracer = h }

func (h *listener) add(sql string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, known := range h.statements {
		if known == sql {
			return
		}
	}
	h.statements = append(h.statements, sql)
}

func (h *listener) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.statements...)
}

func (h *listener) heard(text string) bool {
	for _, sql := range h.all() {
		if strings.Contains(sql, text) {
			return true
		}
	}
	return false
}

// The methods of a pgx.QueryTracer and a pgx.BatchTracer.
func (h *listener) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	h.add(q.SQL)
	return ctx
}

func (h *listener) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	for _, q := range b.Batch.QueuedQueries {
		h.add(q.SQL)
	}
	return ctx
}

func (*listener) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*listener) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
}
func (*listener) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// literals gives the SQL in the package's own code, with where it stands.
func literals(t *testing.T) map[string]string {
	t.Helper()
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	found, set := map[string]string{}, token.NewFileSet()
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, f.Name(), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			switch word, _, _ := strings.Cut(strings.TrimSpace(text), " "); word {
			case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH":
				found[text] = set.Position(literal.Pos()).String()
			}
			return true
		})
	}
	require.Greater(t, len(found), 10)
	return found
}
