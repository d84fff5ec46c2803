package idempotency

import (
	"context"
	"log/slog"
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
}

// replayLog keeps replays in memory and writes them in batches. If the process
// dies, up to a quarter of a second of them is missing from the history; the
// answers were given all the same.
type replayLog struct {
	ledger *Ledger
	queue  chan replayed
	done   chan struct{}
	stop   sync.Once
}

func newReplayLog(l *Ledger) *replayLog {
	r := &replayLog{ledger: l, queue: make(chan replayed, replayBuffer), done: make(chan struct{})}
	go r.run()
	return r
}

// add notes a replay. It never waits: with the buffer full, the replay is not
// in the history.
func (r *replayLog) add(id keyID, found row) {
	select {
	case r.queue <- replayed{id, found.Attempt, found.Owner, time.Now()}:
	default:
	}
}

func (r *replayLog) close(ctx context.Context) error {
	r.stop.Do(func() { r.queue <- replayed{} }) // the zero value ends the queue
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *replayLog) run() {
	defer close(r.done)
	for first := range r.queue {
		batch, last := r.gather(first)
		if len(batch) > 0 {
			if err := r.write(batch); err != nil {
				r.ledger.log.Warn("writing replays to the history", slog.Any("err", err), slog.Int("lost", len(batch)))
			}
		}
		if last {
			return
		}
	}
}

// gather takes what comes within the next quarter of a second.
func (r *replayLog) gather(first replayed) (batch []replayed, last bool) {
	if first == (replayed{}) {
		return nil, true
	}
	batch = append(batch, first)
	timer := time.NewTimer(replayFlush)
	defer timer.Stop()
	for len(batch) < replayBuffer {
		select {
		case next := <-r.queue:
			if next == (replayed{}) {
				return batch, true
			}
			batch = append(batch, next)
		case <-timer.C:
			return batch, false
		}
	}
	return batch, false
}

func (r *replayLog) write(batch []replayed) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var (
		scopes, keys, owners []string
		attempts             []int32
		times                []time.Time
	)
	for _, b := range batch {
		scopes, keys, owners = append(scopes, b.id.scope), append(keys, string(b.id.key)), append(owners, b.owner)
		attempts, times = append(attempts, int32(b.attempt)), append(times, b.at)
	}
	// The count of a key's replays in the table bounds what is added to it.
	_, err := r.ledger.pool.Exec(ctx, `
		INSERT INTO key_history (scope, key, attempt, owner, instance, what, at)
		SELECT scope, key, attempt, owner, $6, 'replayed', at
		  FROM (SELECT n.*, row_number() OVER (PARTITION BY scope, key ORDER BY at) +
		               (SELECT count(*) FROM key_history h
		                 WHERE h.scope = n.scope AND h.key = n.key AND h.what = 'replayed') AS nth
		          FROM unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::timestamptz[])
		               AS n (scope, key, attempt, owner, at)) AS numbered
		 WHERE nth <= $7
		 ORDER BY at`,
		scopes, keys, attempts, owners, times, r.ledger.instance, replaysPerKey)
	return err
}
