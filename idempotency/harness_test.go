package idempotency

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must come. It is a deadline for
// hopeless cases and never part of what is tested.
const patience = 30 * time.Second

// database is a schema of its own on the server that TEST_DATABASE_URL, or else
// DATABASE_URL, names; nothing outside of it is touched.
type database struct {
	t      testing.TB
	schema string
	// direct is for the test's own look at, and hand in, what the ledger does.
	direct *pgxpool.Pool
}

// business is what a shop has beside the ledger. charges has no unique index,
// on purpose: it counts how often a side effect was recorded.
const business = `
	CREATE TABLE charges (n bigint GENERATED ALWAYS AS IDENTITY, key text NOT NULL, attempt integer NOT NULL);
	CREATE TABLE orders (account text NOT NULL, id text NOT NULL, intent text, PRIMARY KEY (account, id));`

func newDatabase(t testing.TB) *database {
	t.Helper()
	var random [8]byte
	_, _ = rand.Read(random[:])
	d := &database{t: t, schema: "idempotency_" + hex.EncodeToString(random[:])}
	d.direct = d.pool(4)
	d.exec(`CREATE SCHEMA ` + d.schema)
	t.Cleanup(func() {
		_, err := d.direct.Exec(context.Background(), `DROP SCHEMA `+d.schema+` CASCADE`)
		require.NoError(t, err)
	})
	d.exec(Schema)
	d.exec(business)
	return d
}

// config reaches the schema, and only it.
func (d *database) config() *pgxpool.Config {
	d.t.Helper()
	url := os.Getenv("TEST_DATABASE_URL")
	if url == "" {
		url = os.Getenv("DATABASE_URL")
	}
	require.NotEmpty(d.t, url, "set TEST_DATABASE_URL to a PostgreSQL 15 or later in which a schema may be created")
	config, err := pgxpool.ParseConfig(url)
	require.NoError(d.t, err)
	config.ConnConfig.RuntimeParams["search_path"] = d.schema
	config.ConnConfig.RuntimeParams["application_name"] = d.schema
	return config
}

// pool opens a pool of at most n connections, which the test must have given
// back when it ends.
func (d *database) pool(n int32, options ...func(*pgxpool.Config)) *pgxpool.Pool {
	d.t.Helper()
	config := d.config()
	config.MaxConns = n
	for _, option := range options {
		option(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	require.NoError(d.t, err)
	d.t.Cleanup(pool.Close)
	return pool
}

// ledger makes a ledger on a pool of its own, as another process would.
func (d *database) ledger(conns int32, settings ...func(*Config)) *Ledger {
	d.t.Helper()
	return d.ledgerOn(d.pool(conns), settings...)
}

func (d *database) ledgerOn(pool *pgxpool.Pool, settings ...func(*Config)) *Ledger {
	d.t.Helper()
	config := Config{Pool: pool, Instance: "test", Wait: patience, AcquireWait: patience}
	for _, set := range settings {
		set(&config)
	}
	l, err := New(config)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, l.Close(context.Background())) })
	return l
}

// noWait makes a duplicate answer at once.
func noWait(c *Config) { c.Wait = -1 }

func (d *database) exec(sql string, args ...any) int64 {
	d.t.Helper()
	tag, err := d.direct.Exec(context.Background(), sql, args...)
	require.NoError(d.t, err)
	return tag.RowsAffected()
}

func ask[T any](d *database, sql string, args ...any) T {
	d.t.Helper()
	rows, err := d.direct.Query(context.Background(), sql, args...)
	require.NoError(d.t, err)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(d.t, err)
	return value
}

// charges counts how often a side effect of the key was recorded.
func (d *database) charges(key Key) int {
	d.t.Helper()
	return ask[int](d, `SELECT count(*) FROM charges WHERE key = $1`, key)
}

// keyRow gives the whole row as text, to be compared, or "" if there is none.
func (d *database) keyRow(key Key) string {
	d.t.Helper()
	return ask[string](d, `SELECT coalesce((SELECT k::text FROM idempotency_keys k WHERE key = $1), '')`, key)
}

// lapse makes the key's lease end in the past, as the database sees it.
func (d *database) lapse(key Key) {
	d.t.Helper()
	require.EqualValues(d.t, 1, d.exec(
		`UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 second' WHERE key = $1 AND status = 'in_progress'`, key))
}

// history gives what the key has been through.
func (d *database) history(key Key) []string {
	d.t.Helper()
	rows, err := d.direct.Query(context.Background(), `SELECT what FROM key_history WHERE key = $1 ORDER BY at, id`, key)
	require.NoError(d.t, err)
	whats, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(d.t, err)
	return whats
}

// blocked waits until n statements of this test wait for a lock in the server.
func (d *database) blocked(n int) {
	d.t.Helper()
	eventually(d.t, strconv.Itoa(n)+" statements wait for a lock", func() bool {
		return ask[int](d, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, d.schema) >= n
	})
}

// eventually looks again and again until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-look.C:
		case <-deadline:
			require.FailNow(t, "did not come about: "+what)
		}
	}
}

// together runs n workers that start at the same moment, and waits for them.
func together(n int, work func(worker int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for worker := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			work(worker)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// purchase is a request to pay an amount. Two of the same amount are one request.
func purchase(key Key, amount int) Request {
	const operation = "POST /orders/42/payments"
	fingerprint, err := NewFingerprint(operation, map[string]any{"amount": amount})
	if err != nil {
		panic(err)
	}
	return Request{Scope: "acct_1", Key: key, Operation: operation, Fingerprint: fingerprint}
}

// paid is the answer to a purchase, telling which attempt made it.
func paid(attempt int) Response {
	return Response{Status: 201, Type: "application/json", Body: []byte(`{"paid_by_attempt":` + strconv.Itoa(attempt) + `}`)}
}

// recordPaid is the write of a record phase: the business row and the answer.
func recordPaid(c Claim) func(context.Context, *Tx) (Response, error) {
	return func(_ context.Context, tx *Tx) (Response, error) {
		queueCharge(tx, c)
		return paid(c.Attempt), nil
	}
}

func queueCharge(tx *Tx, c Claim) {
	tx.Queue(`INSERT INTO charges (key, attempt) VALUES ($1, $2)`, c.Key, c.Attempt)
}

// mustClaim claims a key that must be free for it.
func mustClaim(t testing.TB, l *Ledger, req Request) Claim {
	t.Helper()
	claim, answer, err := l.Claim(context.Background(), req, nil)
	require.NoError(t, err)
	require.Nil(t, answer)
	require.NotNil(t, claim)
	return *claim
}

// mustRecord completes a claim that must still be held.
func mustRecord(t testing.TB, l *Ledger, c Claim) Response {
	t.Helper()
	answer, err := l.Record(context.Background(), c, recordPaid(c))
	require.NoError(t, err)
	require.False(t, answer.Replayed)
	return answer
}

// mustRelease makes a claim's key retryable.
func mustRelease(t testing.TB, l *Ledger, c Claim) {
	t.Helper()
	answer, err := l.Release(context.Background(), c, nothing)
	require.NoError(t, err)
	require.Nil(t, answer)
}

// lockTimeout makes statements give up waiting for a lock.
func lockTimeout(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["lock_timeout"] = "1ms" }

// commandTag is what a statement's callback is given.
type commandTag = pgconn.CommandTag

// nothing is the write of a phase without business rows.
func nothing(context.Context, *Tx) error { return nil }
