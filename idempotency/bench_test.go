package idempotency

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// BenchmarkClaimAndRecord measures a whole remote operation against the floor:
// the same statements from a bare pgx loop, in turn with it, in the same run.
// The ratio is the ledger's throughput as a share of the floor's.
func BenchmarkClaimAndRecord(b *testing.B) {
	d := newDatabase(b)
	conn, err := d.direct.Acquire(b.Context())
	require.NoError(b, err)
	defer conn.Release()
	answer := Response{Status: 201, Type: "application/json", Body: []byte(`{"id":"pay_1","status":"succeeded"}`)}
	req := purchase("", 4900)
	operation := func(l *Ledger, key Key) (owner string) {
		req.Key = key
		claim, _, err := l.Claim(b.Context(), req, nil)
		if err == nil {
			_, err = l.Record(b.Context(), *claim, func(context.Context, *Tx) (Response, error) { return answer, nil })
		}
		if err != nil {
			b.Fatal(err)
		}
		return claim.Owner
	}
	script := &script{}
	script.owner = operation(d.ledgerOn(d.pool(1, script.listen)), "once")
	l := d.ledger(1)
	measure(b, func() {
		operation(l, Key(newOwner()))
	}, func() {
		if err := script.play(b.Context(), conn.Conn(), Key(newOwner()), newOwner()); err != nil {
			b.Fatal(err)
		}
	})
}

// script is what the ledger once said to the server for the key "once": each
// batch is one round trip.
type script struct {
	batches []*pgx.Batch
	owner   string
}

func (s *script) listen(c *pgxpool.Config) { c.ConnConfig.Tracer = s }

// play says it again, for another key and owner.
func (s *script) play(ctx context.Context, conn *pgx.Conn, key Key, owner string) error {
	for _, said := range s.batches {
		batch := &pgx.Batch{}
		for _, q := range said.QueuedQueries {
			args := slices.Clone(q.Arguments)
			for i := range args {
				switch args[i] {
				case Key("once"):
					args[i] = key
				case s.owner:
					args[i] = owner
				}
			}
			batch.Queue(q.SQL, args...)
		}
		if err := conn.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
	}
	return nil
}

// The methods of a pgx.QueryTracer and a pgx.BatchTracer.
func (s *script) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	batch := &pgx.Batch{}
	batch.Queue(q.SQL, q.Args...)
	s.batches = append(s.batches, batch)
	return ctx
}

func (s *script) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	s.batches = append(s.batches, b.Batch)
	return ctx
}

func (*script) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*script) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*script) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// BenchmarkReplay measures the answer to a duplicate against the floor: reading
// the row.
func BenchmarkReplay(b *testing.B) {
	d := newDatabase(b)
	l := d.ledger(2)
	req := purchase("k", 4900)
	mustRecord(b, l, mustClaim(b, l, req))
	conn, err := d.direct.Acquire(b.Context())
	require.NoError(b, err)
	defer conn.Release()
	measure(b, func() {
		if _, answer, err := l.Claim(b.Context(), req, nil); err != nil || answer == nil {
			b.Fatal(answer, err)
		}
	}, func() {
		if _, _, err := foundRow(conn.QueryRow(b.Context(), selectRow, req.Scope, req.Key)); err != nil {
			b.Fatal(err)
		}
	})
}

// measure runs both in turn and reports the ratio of their times: of the
// medians, since a mean on a busy machine measures the other programs.
func measure(b *testing.B, ledger, floor func()) {
	ledger() // both have prepared their statements
	floor()
	var ledgerTimes, floorTimes []time.Duration
	for b.Loop() {
		start := time.Now()
		ledger()
		half := time.Now()
		floor()
		ledgerTimes = append(ledgerTimes, half.Sub(start))
		floorTimes = append(floorTimes, time.Since(half))
	}
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
	b.ReportMetric(float64(median(ledgerTimes).Nanoseconds()), "ledger-ns/op")
	b.ReportMetric(float64(median(floorTimes).Nanoseconds()), "floor-ns/op")
	b.ReportMetric(float64(median(floorTimes))/float64(median(ledgerTimes)), "ratio")
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkDuplicates sends a thousand requests under one key at once, over
// eight connections, and reports how long after the winner the losers have
// their answer.
func BenchmarkDuplicates(b *testing.B) {
	const duplicates = 1000
	d := newDatabase(b)
	l := d.ledger(8)
	var late []time.Duration
	for b.Loop() {
		req := purchase(Key(newOwner()), 4900)
		var (
			mu    sync.Mutex
			won   time.Time
			times []time.Time
		)
		together(duplicates, func(int) {
			claim, answer, err := l.Claim(context.Background(), req, nil)
			if claim != nil {
				_, err = l.Record(context.Background(), *claim, recordPaid(*claim))
			}
			at := time.Now()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				b.Error(err)
			case claim != nil:
				won = at
			case answer != nil:
				times = append(times, at)
			}
		})
		require.Len(b, times, duplicates-1)
		for _, at := range times {
			late = append(late, at.Sub(won))
		}
		require.Equal(b, 1, d.charges(req.Key))
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "losers-p99-ms")
}

// manyKeys is how many keys BenchmarkManyKeys fills the table with: a million,
// or BENCH_KEYS.
func manyKeys(b *testing.B) int {
	text := os.Getenv("BENCH_KEYS")
	if text == "" {
		return 1_000_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err, "BENCH_KEYS")
	return n
}

// BenchmarkManyKeys measures a whole remote operation in a table full of keys
// against the floor: the same in an empty one. It says how the claim grows with
// the table.
func BenchmarkManyKeys(b *testing.B) {
	operation := func(d *database) func() {
		l := d.ledger(1)
		return func() {
			claim, _, err := l.Claim(b.Context(), purchase(Key(newOwner()), 4900), nil)
			if err == nil {
				_, err = l.Record(b.Context(), *claim, func(context.Context, *Tx) (Response, error) {
					return Response{Status: 201, Type: "application/json", Body: []byte(`{"id":"pay_1"}`)}, nil
				})
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	empty, full := newDatabase(b), newDatabase(b)
	fill(b, full, manyKeys(b), "clock_timestamp()")
	measure(b, operation(full), operation(empty))
}

// fill adds keys that were completed at a time.
func fill(b *testing.B, d *database, keys int, completed string) {
	b.Helper()
	_, err := d.direct.Exec(b.Context(), `
		INSERT INTO idempotency_keys (scope, key, owner, attempt, operation, request_hash, status, recovery_point,
		       response_status, response_type, response_body, created_at, completed_at)
		SELECT 'acct_' || n % 1000, md5(n::text), md5(n::text), 1, 'POST /orders', sha256(n::text::bytea), 'completed', 'called',
		       201, 'application/json', '{"id":"pay_1","status":"succeeded"}', clock_timestamp() - interval '100 days', `+completed+`
		  FROM generate_series(1, $1) n`, keys)
	require.NoError(b, err)
	_, err = d.direct.Exec(b.Context(), `VACUUM ANALYZE idempotency_keys`)
	require.NoError(b, err)
}

// BenchmarkReaper measures how many times faster the reaper removes keys than
// one connection adds them, in the same run; both work at the same time, as in
// a shop.
func BenchmarkReaper(b *testing.B) {
	const keys = 20_000
	d := newDatabase(b)
	l := d.ledger(4)
	var reaping, adding time.Duration
	added := 0
	for b.Loop() {
		fill(b, d, keys, "clock_timestamp() - interval '90 days'")
		reaped := make(chan time.Duration, 1)
		began := time.Now()
		go func() {
			for left := keys; left > 0; {
				result, err := l.ReapOnce(context.Background(), Reap{Retention: 72 * time.Hour})
				if err != nil || result.Keys == 0 {
					b.Error(result, err)
					break
				}
				left -= result.Keys
			}
			reaped <- time.Since(began)
		}()
		for done := false; !done; {
			select {
			case took := <-reaped:
				reaping, adding, done = reaping+took, adding+time.Since(began), true
			default:
				claim, _, err := l.Claim(b.Context(), purchase(Key(newOwner()), 4900), nil)
				if err == nil {
					_, err = l.Record(b.Context(), *claim, recordPaid(*claim))
				}
				if err != nil {
					b.Fatal(err)
				}
				added++
			}
		}
	}
	removed := float64(keys*b.N) / reaping.Seconds()
	inserted := float64(added) / adding.Seconds()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(removed, "reaped/s")
	b.ReportMetric(removed/inserted, "ratio")
}
