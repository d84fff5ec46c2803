package web

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// ledgerPoll is how often the ledger is asked for changes, in one statement
	// for all who watch.
	ledgerPoll = time.Second
	// ledgerStale is how long what was read counts without a change of a key: an
	// order can be settled by an event that touches none.
	ledgerStale = 10 * time.Second
	// ledgerBatch is the most accounts that one turn reads: with as many visitors
	// as there may be, each with an account, all are read within ledgerStale.
	ledgerBatch = maxVisitors / int(ledgerStale/ledgerPoll)
	// ledgerPatience bounds one turn.
	ledgerPatience = 5 * time.Second
	// The most who may watch: each holds a connection.
	maxVisitors           = 1000
	maxVisitorsPerAccount = 16
)

// ledgerFrame is the part of the page that changes, and the name of its content.
type ledgerFrame struct {
	mark string
	html []byte
}

// ledgerWatch keeps the ledgers of those who watch up to date. One poller serves
// all of them, whoever they are, and runs only while somebody watches. A turn
// asks for changes in one statement, and reads the accounts that have some, and
// those that were read long ago, in three round trips for at most ledgerBatch of
// them. So a thousand open pages at rest cost four round trips a second, and a
// turn does not grow with them; where more has changed than fits, the next turn
// begins at once.
type ledgerWatch struct {
	server *Server
	closed context.Context
	close  context.CancelFunc

	mu       sync.Mutex
	accounts map[string]*watchedAccount
	visitors int
	running  bool
	kick     chan struct{} // somebody has come, or is still to be read
}

type watchedAccount struct {
	visitors map[*visitor]bool
	changes  string // the ledger's mark when it was read last
	readAt   time.Time
	frame    *ledgerFrame // nil until it was read
}

// visitor is one open page. frames holds the newest frame that it has not taken.
type visitor struct {
	account string
	frames  chan *ledgerFrame
	seen    string // the content that it has
}

func newLedgerWatch(s *Server) *ledgerWatch {
	w := &ledgerWatch{server: s, accounts: map[string]*watchedAccount{}, kick: make(chan struct{}, 1)}
	w.closed, w.close = context.WithCancel(context.Background())
	return w
}

// join adds a visitor who has seen a content; the first one starts the poller.
// It gives nil if there are too many, or the shop is closing.
func (w *ledgerWatch) join(account, seen string) *visitor {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.accounts[account]
	if w.closed.Err() != nil || w.visitors >= maxVisitors || (a != nil && len(a.visitors) >= maxVisitorsPerAccount) {
		return nil
	}
	if a == nil {
		a = &watchedAccount{visitors: map[*visitor]bool{}}
		w.accounts[account] = a
	}
	v := &visitor{account: account, frames: make(chan *ledgerFrame, 1), seen: seen}
	a.visitors[v] = true
	w.visitors++
	if a.frame != nil {
		v.offer(a.frame)
	}
	if !w.running {
		w.running = true
		go w.run()
	}
	w.hurry()
	return v
}

// hurry lets the next turn begin at once.
func (w *ledgerWatch) hurry() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// leave removes a visitor; the last one stops the poller.
func (w *ledgerWatch) leave(v *visitor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.accounts[v.account]
	if a == nil || !a.visitors[v] {
		return
	}
	delete(a.visitors, v)
	w.visitors--
	if len(a.visitors) == 0 {
		delete(w.accounts, v.account)
	}
}

// offer hands a visitor a frame in place of an older one. The caller holds the
// lock.
func (v *visitor) offer(f *ledgerFrame) {
	if f.mark == v.seen {
		return
	}
	v.seen = f.mark
	select {
	case <-v.frames:
	default:
	}
	v.frames <- f
}

// run asks until nobody watches.
func (w *ledgerWatch) run() {
	tick := time.NewTicker(ledgerPoll)
	defer tick.Stop()
	for {
		accounts := w.watched()
		if len(accounts) == 0 {
			return
		}
		if err := w.turn(accounts); err != nil && w.closed.Err() == nil {
			w.server.cfg.Log.Warn("keeping the ledger's pages up to date", slog.Any("err", err))
		}
		select {
		case <-tick.C:
		case <-w.kick:
		case <-w.closed.Done():
		}
	}
}

// watched lists the accounts that somebody watches. With none, or when the shop
// closes, the poller has ended, in the same lock in which that was seen.
func (w *ledgerWatch) watched() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.accounts) == 0 || w.closed.Err() != nil {
		w.running = false
		return nil
	}
	return slices.Sorted(maps.Keys(w.accounts))
}

// turn asks once what has changed, reads that, and hands it out.
func (w *ledgerWatch) turn(accounts []string) error {
	ctx, cancel := context.WithTimeout(w.closed, ledgerPatience)
	defer cancel()
	marks, err := w.server.cfg.Ledger.Marks(ctx, accounts...)
	if err != nil {
		return err
	}
	changed, more := w.changed(accounts, marks)
	if len(changed) == 0 {
		return nil
	}
	if more {
		defer w.hurry()
	}
	books, err := w.server.books(ctx, changed...)
	if err != nil {
		return err
	}
	for account, b := range books {
		f := &ledgerFrame{mark: b.mark()}
		var html bytes.Buffer
		if err := w.server.writeLedger(ctx, &html, b); err != nil {
			return err
		}
		f.html = html.Bytes()
		w.hand(account, marks[account], f)
	}
	return nil
}

// changed lists the accounts to read in this turn: those that have changed or
// were never read, then those that were read long ago, the oldest first. more is
// true if some that have changed are left for the next turn.
func (w *ledgerWatch) changed(accounts []string, marks map[string]string) (now []string, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var old []string
	for _, account := range accounts {
		switch a := w.accounts[account]; {
		case a == nil: // they have all left
		case a.frame == nil || a.changes != marks[account]:
			now = append(now, account)
		case time.Since(a.readAt) > ledgerStale:
			old = append(old, account)
		}
	}
	longest := func(a, b string) int { return w.accounts[a].readAt.Compare(w.accounts[b].readAt) }
	slices.SortStableFunc(now, longest)
	slices.SortStableFunc(old, longest)
	more = len(now) > ledgerBatch
	now = append(now, old...)
	return now[:min(len(now), ledgerBatch)], more
}

func (w *ledgerWatch) hand(account, changes string, f *ledgerFrame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.accounts[account]
	if a == nil {
		return // they have all left
	}
	a.changes, a.readAt, a.frame = changes, time.Now(), f
	for v := range a.visitors {
		v.offer(f)
	}
}
