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
	queue   chan replayed
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
}

func newReplayLog(l *Ledger) *replayLog {
	r := &replayLog{
		ledger: l, queue: make(chan replayed, replayBuffer),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	go r.run()
	return r
}

// add notes a replay. It never waits: with the buffer full, the replay is not
// in the history.
func (r *replayLog) add(req Request, found row) {
	select {
	case r.queue <- replayed{req.id(), found.Attempt, found.Owner, time.Now(), between(req.arrived, time.Now())}:
	default:
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

func (r *replayLog) run() {
	defer close(r.done)
	for {
		select {
		case first := <-r.queue:
			r.write(r.gather(first))
		case <-r.closing:
			for len(r.queue) > 0 {
				r.write(r.gather(<-r.queue))
			}
			return
		}
	}
}

// gather takes what comes within the next quarter of a second, or what is
// there if the ledger is being closed.
func (r *replayLog) gather(first replayed) []replayed {
	batch := []replayed{first}
	timer := time.NewTimer(replayFlush)
	defer timer.Stop()
	closing := false
	for len(batch) < replayBuffer && !(closing && len(r.queue) == 0) {
		select {
		case next := <-r.queue:
			batch = append(batch, next)
		case <-timer.C:
			return batch
		case <-r.closing:
			closing = true
		}
	}
	return batch
}

func (r *replayLog) write(batch []replayed) {
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
