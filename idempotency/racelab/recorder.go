package racelab

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// recorder keeps what the workers of one trial do.
type recorder struct {
	mu         sync.Mutex
	events     []moment
	marks      []mark
	pending    map[uint32]int // charges of a transaction that is not committed yet, by backend
	statements int
	commits    int
	trips      int
	news       chan struct{} // closed when there is something new
}

// moment is an event with the times of the clock.
type moment struct {
	Event
	start, end time.Time
}

type mark struct {
	worker int
	at     time.Time
}

func newRecorder() *recorder {
	return &recorder{pending: map[uint32]int{}, news: make(chan struct{})}
}

// tell wakes those who wait for something to happen.
func (r *recorder) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
}

func (r *recorder) wake() {
	close(r.news)
	r.news = make(chan struct{})
}

// await waits until something is true of what has happened.
func (r *recorder) await(ctx context.Context, happened func(events []moment) bool) error {
	for {
		r.mu.Lock()
		done, news := happened(r.events), r.news
		r.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add keeps an event that is no statement.
func (r *recorder) add(w *worker, what What, start, end time.Time, note string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, moment{Event{Worker: w.n, What: what, Note: note}, start, end})
	r.wake()
}

// charged keeps a charge that was made outside of the database's transactions.
func (r *recorder) charged(w *worker, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks = append(r.marks, mark{w.n, at})
}

// trip is one round trip: a statement, or a batch of them.
type trip struct {
	w     *worker
	start time.Time
	pid   uint32
	inTx  bool // a transaction was open before
	parts []part
}

// part is one statement of a trip.
type part struct {
	sql string
	tag pgconn.CommandTag
	err error
}

// add keeps a round trip that has ended.
func (r *recorder) trip(t *trip, err error) {
	end := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trips++
	r.statements += len(t.parts)
	e := Event{Worker: t.w.n, What: EventOther, Statements: len(t.parts), Backend: t.pid, SQLSTATE: sqlState(err)}
	// What became of a statement whose reply was lost only the lab knows: the
	// server had done it.
	lost := t.w.lost && err != nil && e.SQLSTATE == ""
	if lost {
		t.w.lost, e.Note = false, "PostgreSQL's reply is lost"
	}
	var texts []string
	inTx, chief := t.inTx, false
	for _, p := range t.parts {
		text := oneLine(p.sql)
		texts = append(texts, text)
		what := kindOf(text, p.tag)
		if e.SQLSTATE == "" {
			e.SQLSTATE = sqlState(p.err)
		}
		switch {
		case !chief && what != EventBegin && (what != EventCommit && what != EventRollback || len(t.parts) == 1):
			e.What, e.Rows, chief = what, p.tag.RowsAffected(), true
		case !chief && len(t.parts) == 1:
			e.What = what
		}
		failed := p.err != nil || p.tag.String() == ""
		switch {
		case lost:
			if strings.Contains(text, "INTO charges") {
				r.pending[t.pid]++
			}
			if what == EventCommit || !inTx {
				r.commit(&e, t, end)
			}
		case failed: // and with it all that the transaction wrote
			delete(r.pending, t.pid)
		case what == EventBegin:
			inTx = true
		case what == EventCommit && p.tag.String() == "COMMIT":
			r.commit(&e, t, end)
			inTx = false
		case what == EventCommit, what == EventRollback:
			delete(r.pending, t.pid)
			inTx = false
		case p.tag.RowsAffected() > 0 && !p.tag.Select():
			if strings.Contains(text, "INTO charges") {
				r.pending[t.pid] += int(p.tag.RowsAffected())
			}
			if !inTx {
				r.commit(&e, t, end)
			}
		}
	}
	e.SQL = strings.Join(texts, "; ")
	r.events = append(r.events, moment{e, t.start, end})
	r.wake()
}

// commit notes that what was written has become real.
func (r *recorder) commit(e *Event, t *trip, at time.Time) {
	r.commits++
	e.Commits = true
	for range r.pending[t.pid] {
		r.marks = append(r.marks, mark{t.w.n, at})
	}
	delete(r.pending, t.pid)
}

func oneLine(sql string) string { return strings.Join(strings.Fields(sql), " ") }

// kindOf says what a statement is.
func kindOf(sql string, tag pgconn.CommandTag) What {
	first, _, _ := strings.Cut(sql, " ")
	switch strings.ToUpper(first) {
	case "BEGIN":
		return EventBegin
	case "COMMIT":
		return EventCommit
	case "ROLLBACK":
		return EventRollback
	case "INSERT":
		return EventInsert
	case "UPDATE":
		return EventUpdate
	case "DELETE":
		return EventDelete
	case "SELECT":
		if strings.Contains(sql, "pg_advisory") {
			return EventLock
		}
		return EventSelect
	}
	switch {
	case tag.Insert():
		return EventInsert
	case tag.Update():
		return EventUpdate
	case tag.Delete():
		return EventDelete
	case tag.Select():
		return EventSelect
	}
	return EventOther
}

// tracer tells the recorder of whoever a statement belongs to. Statements of
// nobody, such as a ledger's own in the background, are not counted.
type tracer struct{}

type workerKey struct{}

type tripKey struct{}

// as gives a context under which statements are w's.
func as(ctx context.Context, w *worker) context.Context {
	return context.WithValue(ctx, workerKey{}, w)
}

func workerOf(ctx context.Context) *worker {
	w, _ := ctx.Value(workerKey{}).(*worker)
	return w
}

func newTrip(ctx context.Context, conn *pgx.Conn, sql ...string) *trip {
	w := workerOf(ctx)
	if w == nil {
		return nil
	}
	for _, s := range sql {
		w.beforeStatement(ctx, oneLine(s))
	}
	return &trip{w: w, start: time.Now(), pid: conn.PgConn().PID(), inTx: conn.PgConn().TxStatus() != 'I'}
}

func (tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t := newTrip(ctx, conn, data.SQL)
	if t != nil {
		t.parts = []part{{sql: data.SQL}}
	}
	return context.WithValue(ctx, tripKey{}, t)
}

func (tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if t, _ := ctx.Value(tripKey{}).(*trip); t != nil {
		t.parts[0].tag, t.parts[0].err = data.CommandTag, data.Err
		t.w.events.trip(t, data.Err)
	}
}

func (tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	var texts []string
	for _, q := range data.Batch.QueuedQueries {
		texts = append(texts, q.SQL)
	}
	t := newTrip(ctx, conn, texts...)
	if t != nil {
		for _, text := range texts {
			t.parts = append(t.parts, part{sql: text})
		}
	}
	return context.WithValue(ctx, tripKey{}, t)
}

func (tracer) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	t, _ := ctx.Value(tripKey{}).(*trip)
	if t == nil {
		return
	}
	i := slices.IndexFunc(t.parts, func(p part) bool { return p.tag.String() == "" && p.err == nil && p.sql == data.SQL })
	if i >= 0 {
		t.parts[i].tag, t.parts[i].err = data.CommandTag, data.Err
	}
}

func (tracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	if t, _ := ctx.Value(tripKey{}).(*trip); t != nil {
		t.w.events.trip(t, data.Err)
	}
}
