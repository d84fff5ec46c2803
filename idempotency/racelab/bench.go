package racelab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"payonce/idempotency"
)

// prefix begins the name of every schema of the lab.
const prefix = "racelab_"

// bench is where the trials of a run take place: a schema, the workers'
// connections, and the lab's own two.
type bench struct {
	variant  *Variant
	settings Settings
	limit    time.Duration // of a trial
	schema   string
	version  string
	config   *pgx.ConnConfig
	pool     *pgxpool.Pool
	shape    poolShape
	lab      *labConn
	observer *observer
	wire     *wire
	emptying string // the script of empty
}

// labConn is the lab's own connection. It takes part in no race: it sets up,
// plays what is outside of the shop, such as the provider, and counts.
type labConn struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// chargesTable has no unique index on the key, on purpose: the lab measures
// what the handler does, and not what a second constraint would have saved it
// from. In production, have one.
const chargesTable = `
	CREATE TABLE charges (
		id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		key    text   NOT NULL,
		amount bigint NOT NULL);`

// open connects the lab, and leaves the schema and the workers to turn.
func (l *Lab) open(ctx context.Context, s Settings) (_ *bench, err error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	b := &bench{settings: s, limit: l.trial, schema: prefix + hex.EncodeToString(random[:]), wire: &wire{}}
	b.config = l.database.Copy()
	b.config.DefaultQueryExecMode = pgx.QueryExecModeExec // one round trip a statement, from the first
	b.config.Tracer = nil
	for name, value := range map[string]string{
		"search_path":                         b.schema, // and nothing else: no statement can reach the shop
		"application_name":                    b.schema,
		"client_min_messages":                 "error",
		"default_transaction_isolation":       "read committed",
		"statement_timeout":                   strconv.Itoa(int(statementLimit.Milliseconds())),
		"lock_timeout":                        "0",
		"idle_in_transaction_session_timeout": strconv.Itoa(int(statementLimit.Milliseconds())),
	} {
		b.config.RuntimeParams[name] = value
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(ctx))
		}
	}()
	conn, err := pgx.ConnectConfig(ctx, b.config)
	if err != nil {
		return nil, err
	}
	b.lab, b.version = &labConn{conn: conn}, version(conn)
	sweep(ctx, conn)
	if b.observer, err = watch(ctx, b.config, b.workersName()); err != nil {
		return nil, fmt.Errorf("opening the observer's connection: %w", err)
	}
	return b, nil
}

// turn makes the schema anew for a variant. The workers' connections stay from
// one variant to the next where they can: connecting costs more than a trial.
func (b *bench) turn(ctx context.Context, v *Variant) error {
	b.variant, b.emptying = v, ""
	script := "DROP SCHEMA IF EXISTS " + b.schema + " CASCADE; CREATE SCHEMA " + b.schema + ";" + chargesTable + v.tables
	if v.ledger {
		script += idempotency.Schema
	}
	if err := b.lab.exec(ctx, script); err != nil {
		return fmt.Errorf("making the schema: %w", err)
	}
	shape := poolShape{b.conns(), v.lockTimeout}
	if b.pool != nil && b.shape == shape {
		return nil
	}
	if b.pool != nil {
		b.pool.Close()
	}
	b.shape = shape
	if err := b.openPool(ctx); err != nil {
		return fmt.Errorf("opening the workers' connections: %w", err)
	}
	return nil
}

// poolShape is what of the workers' pool a variant can choose.
type poolShape struct {
	conns       int
	lockTimeout time.Duration
}

// workersName is the application_name of the workers' sessions.
func (b *bench) workersName() string { return b.schema + "_workers" }

func (b *bench) conns() int {
	if b.variant.conns > 0 {
		return b.variant.conns
	}
	return b.variant.parties(b.settings)
}

// openPool opens the workers' connections, all of them: what a race costs must
// not hang on who connects first.
func (b *bench) openPool(ctx context.Context) error {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	config.ConnConfig = b.config.Copy()
	config.ConnConfig.RuntimeParams["application_name"] = b.workersName()
	config.ConnConfig.RuntimeParams["lock_timeout"] = strconv.Itoa(int(b.shape.lockTimeout.Milliseconds()))
	config.ConnConfig.Tracer = tracer{}
	config.ConnConfig.DialFunc = b.wire.dial(config.ConnConfig.DialFunc)
	config.MaxConns = int32(b.shape.conns)
	// A ping would be counted as a statement of whoever takes the connection.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	if b.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	return b.warm(ctx)
}

// warm sees to it that every connection of the pool is open.
func (b *bench) warm(ctx context.Context) error {
	var held []*pgxpool.Conn
	defer func() {
		for _, c := range held {
			c.Release()
		}
	}()
	for range b.shape.conns {
		c, err := b.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		held = append(held, c)
	}
	return nil
}

// closeLimit bounds the cleaning up, which happens whatever became of the run.
const closeLimit = 15 * time.Second

// close ends every session of the run and drops its schema.
func (b *bench) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if b.observer != nil {
		b.observer.close(ctx)
	}
	if b.lab == nil {
		return nil
	}
	conn := b.lab.conn
	if conn.IsClosed() { // a canceled statement takes its connection along
		var err error
		if conn, err = pgx.ConnectConfig(ctx, b.config); err != nil {
			return fmt.Errorf("connecting to drop %s: %w", b.schema, err)
		}
	}
	defer func() { _ = conn.Close(ctx) }()
	// The server may not have noticed yet that a canceled worker is gone, and
	// its session holds locks on what is to be dropped.
	_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, b.workersName())
	if b.pool != nil {
		b.pool.Close()
	}
	if err == nil {
		_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+b.schema+" CASCADE")
	}
	if err != nil {
		return fmt.Errorf("dropping %s: %w", b.schema, err)
	}
	return nil
}

// sweep drops the schemas of runs whose process died. A run has a session of
// its schema's name as long as it lives. It does what it can: another lab may
// sweep at the same time.
func sweep(ctx context.Context, conn *pgx.Conn) {
	rows, _ := conn.Query(ctx, `
		SELECT nspname FROM pg_namespace
		 WHERE nspname ~ '^`+prefix+`[0-9a-f]{16}$' AND nspowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
		   AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = nspname)`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return
	}
	for _, name := range names {
		_, _ = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+name+" CASCADE")
	}
}

// exec runs a statement of the lab's own. It is not part of any worker's work,
// and goes on if the worker's client hangs up.
func (c *labConn) exec(ctx context.Context, sql string, args ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.conn.Exec(ctx, sql, args...)
	return err
}

// ask reads one value on the lab's own connection.
func ask[T any](ctx context.Context, c *labConn, sql string, args ...any) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows, _ := c.conn.Query(ctx, sql, args...)
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
}

// empty makes the schema as it was before the first trial. DELETE, because
// TRUNCATE makes new files for every table and index, which is most of the time
// of a short trial.
func (b *bench) empty(ctx context.Context) error {
	if b.emptying == "" {
		var err error
		b.emptying, err = ask[string](ctx, b.lab, `
			SELECT concat_ws('; ',
				(SELECT string_agg(format('DELETE FROM %I', tablename), '; ') FROM pg_tables WHERE schemaname = $1),
				(SELECT string_agg(format('SELECT setval(%L, 1, false)', quote_ident(sequencename)), '; ') FROM pg_sequences WHERE schemaname = $1))`,
			b.schema)
		if err != nil {
			return err
		}
	}
	return b.lab.exec(ctx, b.emptying)
}
