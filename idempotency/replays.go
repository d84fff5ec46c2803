package idempotency

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The bounds of the replays kept for the history. A replay is one statement;
// writing its history must not make it two.
const (
	replayFlush   = 250 * time.Millisecond
	replayBuffer  = 4096
	replaysPerKey = 64
)

// replayed is one replay, to be written later.
type replayed struct {
	id      keyID
	attempt int
	owner   string
	at      time.Time
	waited  float64 // milliseconds since the request arrived; 0 if that is not known
}

// replayLog keeps replays in memory and writes them in batches. If the process
// dies, up to a quarter of a second of them is missing from the history; the
// answers were given all the same.
type replayLog struct {
	ledger  *Ledger
	first   chan struct{} // the first of a batch is there
	closing chan struct{}
	done    chan struct{}
	once    sync.Once

	mu      sync.Mutex
	pending []replayed
}

func newReplayLog(l *Ledger) *replayLog {
	r := &replayLog{ledger: l, first: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r
}

// add notes a replay. It never waits: with the buffer full, the replay is not
// in the history. Only the first of a batch wakes the writer: to wake it for
// each would cost more than all the rest of a replay but its statement.
func (r *replayLog) add(req Request, found row) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == replayBuffer {
		return
	}
	r.pending = append(r.pending, replayed{req.id(), found.Attempt, found.Owner, now, between(req.arrived, now)})
	if len(r.pending) == 1 {
		select {
		case r.first <- struct{}{}:
		default: // it is awake
		}
	}
}

// close writes what is in the buffer and stops the writer.
func (r *replayLog) close(ctx context.Context) error {
	r.once.Do(func() { close(r.closing) })
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run writes, a quarter of a second after the first of them, what has come.
func (r *replayLog) run() {
	defer close(r.done)
	for {
		select {
		case <-r.first:
		case <-r.closing:
			r.write(r.take())
			return
		}
		timer := time.NewTimer(replayFlush)
		select {
		case <-timer.C:
		case <-r.closing:
			timer.Stop()
		}
		r.write(r.take())
	}
}

func (r *replayLog) take() []replayed {
	r.mu.Lock()
	defer r.mu.Unlock()
	batch := r.pending
	r.pending = nil
	return batch
}

func (r *replayLog) write(batch []replayed) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var (
		scopes, keys, owners []string
		attempts             []int32
		ages                 ages
		waits                []float64
	)
	for _, b := range batch {
		scopes, keys, owners = append(scopes, b.id.scope), append(keys, string(b.id.key)), append(owners, b.owner)
		attempts = append(attempts, int32(b.attempt))
		ages.since = append(ages.since, b.at)
		waits = append(waits, b.waited)
	}
	_, err := r.ledger.pool.Exec(ctx, insertReplays, scopes, keys, attempts, owners, ages, r.ledger.instance, replaysPerKey, waits)
	if err != nil {
		r.ledger.log.Warn("writing replays to the history", slog.Any("err", err), slog.Int("lost", len(batch)))
	}
}

// ages are sent as an array of seconds: how long ago, and not when, since the
// history has one clock, the database's. They are counted when the argument is
// encoded, which is after the statement was prepared.
type ages struct{ since []time.Time }

// Value implements driver.Valuer.
func (a ages) Value() (driver.Value, error) {
	seconds := make([]string, len(a.since))
	for i, t := range a.since {
		seconds[i] = strconv.FormatFloat(time.Since(t).Seconds(), 'f', 6, 64)
	}
	return "{" + strings.Join(seconds, ",") + "}", nil
}

// The count of a key's replays in the table bounds what is added to it. A key
// that the reaper has removed gets none, since nothing would remove them.
const insertReplays = `
	INSERT INTO key_history (scope, key, attempt, owner, instance, what, at, detail)
	SELECT scope, key, attempt, owner, $6, 'replayed', at, jsonb_strip_nulls(jsonb_build_object('waited', nullif(waited, 0)))
	  FROM (SELECT n.scope, n.key, n.attempt, n.owner, n.waited, statement_timestamp() - make_interval(secs => n.age) AS at,
	               row_number() OVER (PARTITION BY n.scope, n.key ORDER BY n.age DESC) +
	               (SELECT count(*) FROM key_history h
	                 WHERE h.scope = n.scope AND h.key = n.key AND h.what = 'replayed') AS nth
	          FROM unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::float8[], $8::float8[])
	               AS n (scope, key, attempt, owner, age, waited)
	          JOIN idempotency_keys USING (scope, key)) AS numbered
	 WHERE nth <= $7
	 ORDER BY at`
