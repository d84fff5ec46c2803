package racelab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// lookEvery is how often the observer looks during a trial. A wait that is shorter may not be
// seen; where a wait is part of the finding, the lab holds it until it is seen.
const lookEvery = 2 * time.Millisecond

// observer asks PostgreSQL again and again who waits for whom, on a connection
// of its own.
type observer struct {
	conn *pgx.Conn
	name string
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	running chan struct{} // closed while there is a trial
	changed chan struct{} // closed at the next look
	last    look
	looks   []look // those of this trial that showed somebody waiting or idle
	err     error
}

// look is what one look showed.
type look struct {
	asked, answered time.Time
	waiting         map[uint32]blocked // by backend
	idle            int                // backends that are idle in a transaction
}

// blocked is a backend that waits for a lock.
type blocked struct {
	sql string   // the beginning of the statement that waits
	by  []uint32 // the backends in its way
}

func (l look) held() int { return len(l.waiting) + l.idle }

// lookSQL leaves out who waits for a page of a file, or for a file to grow: that
// is over in a moment, and no transaction's end has to do with it.
const lookSQL = `
	SELECT pid, waits, left(query, 400), CASE WHEN waits THEN pg_blocking_pids(pid) ELSE '{}' END
	  FROM pg_stat_activity, coalesce(wait_event_type = 'Lock' AND wait_event NOT IN ('extend', 'page'), false) AS waits
	 WHERE application_name = $1 AND (waits OR state LIKE 'idle in transaction%')`

// watch starts looking at the sessions of that application_name.
func watch(ctx context.Context, config *pgx.ConnConfig, name string) (*observer, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	o := &observer{conn: conn, name: name, stop: stop, done: make(chan struct{}), running: make(chan struct{}), changed: make(chan struct{})}
	go o.run(ctx)
	return o, nil
}

func (o *observer) run(ctx context.Context) {
	defer close(o.done)
	pause := time.NewTicker(lookEvery)
	defer pause.Stop()
	for {
		select {
		case <-o.trial():
		case <-ctx.Done():
			return
		}
		l, err := o.look(ctx)
		o.mu.Lock()
		o.last, o.err = l, err
		if l.held() > 0 {
			o.looks = append(o.looks, l)
		}
		close(o.changed)
		o.changed = make(chan struct{})
		o.mu.Unlock()
		if err != nil {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

func (o *observer) look(ctx context.Context) (look, error) {
	l := look{asked: time.Now(), waiting: map[uint32]blocked{}}
	rows, _ := o.conn.Query(ctx, lookSQL, o.name)
	var (
		pid   int32
		waits bool
		sql   string
		by    []int32
	)
	_, err := pgx.ForEachRow(rows, []any{&pid, &waits, &sql, &by}, func() error {
		if !waits {
			l.idle++
			return nil
		}
		if len(by) == 0 { // it is over already
			return nil
		}
		b := blocked{sql: oneLine(sql)}
		for _, other := range by {
			b.by = append(b.by, uint32(other))
		}
		l.waiting[uint32(pid)] = b
		return nil
	})
	l.answered = time.Now()
	return l, err
}

// await waits for a look, begun after the call, that shows what it is asked for.
func (o *observer) await(ctx context.Context, shows func(look) bool) error {
	asked := time.Now()
	for {
		o.mu.Lock()
		last, err, changed := o.last, o.err, o.changed
		o.mu.Unlock()
		switch {
		case err != nil:
			return fmt.Errorf("observing: %w", err)
		case last.asked.After(asked) && shows(last):
			return nil
		}
		select {
		case <-changed:
		case <-o.done:
			return fmt.Errorf("observing: the observer has stopped")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next waits for one more look.
func (o *observer) next(ctx context.Context) error {
	return o.await(ctx, func(look) bool { return true })
}

// trial gives a channel that is closed while there is a trial to look at.
func (o *observer) trial() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.running
}

// begin forgets what earlier trials showed and starts to look, end stops, and
// taken gives what was seen.
func (o *observer) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks = nil
	close(o.running)
}

func (o *observer) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running = make(chan struct{})
}

func (o *observer) taken() []look {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.looks
}

func (o *observer) close(ctx context.Context) {
	o.stop()
	<-o.done
	_ = o.conn.Close(ctx)
}
