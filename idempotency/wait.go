package idempotency

import (
	"context"
	"sync"
	"time"
)

// How often a watched key is looked at: soon at first, since most calls take a
// fraction of a second, then rarely enough not to matter.
const (
	firstPoll = 10 * time.Millisecond
	lastPoll  = 80 * time.Millisecond
)

// watches lets any number of duplicates wait for one key at the price of one
// poller a key and process. A waiting duplicate holds no connection: with one
// each, the duplicates of one slow call would drain the pool.
type watches struct {
	poll func(context.Context, keyID) (row, bool, error)

	mu sync.Mutex
	on map[keyID]*watch
}

// watch is one key that somebody waits for. seen is closed when the key is no
// longer in progress under a live lease; what was read then stands beside it.
type watch struct {
	waiters int
	seen    chan struct{}
	stop    context.CancelFunc
	settled bool
	row     *row
}

// wait waits until the key's owner has ended, at most the configured time. It
// returns the row if the owner was seen to end, else nil; the caller decides
// from the row it reads next.
func (l *Ledger) wait(ctx context.Context, id keyID) (*row, error) {
	if l.waitFor < 0 {
		return nil, nil
	}
	w := l.watches.join(id)
	defer l.watches.leave(id, w)
	limit := time.NewTimer(l.waitFor)
	defer limit.Stop()
	select {
	case <-w.seen:
		return w.row, nil
	case <-limit.C:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join adds a waiter; the first one starts the poller.
func (s *watches) join(id keyID) *watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on == nil {
		s.on = make(map[keyID]*watch)
	}
	w := s.on[id]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &watch{seen: make(chan struct{}), stop: stop}
		s.on[id] = w
		go s.run(ctx, id, w)
	}
	w.waiters++
	return w
}

// leave removes a waiter; the last one stops the poller.
func (s *watches) leave(id keyID, w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.waiters--; w.waiters > 0 {
		return
	}
	w.stop()
	if s.on[id] == w {
		delete(s.on, id)
	}
}

// run looks at the key until its owner has ended or nobody waits.
func (s *watches) run(ctx context.Context, id keyID, w *watch) {
	for pause := firstPoll; ; pause = min(pause*2, lastPoll) {
		select {
		case <-w.seen:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		// An error is not news about the key: the pool may be busy for a
		// moment. The waiters have a limit of their own.
		found, exists, err := s.poll(ctx, id)
		if err != nil || (exists && found.Status == InProgress && !found.Lapsed) {
			continue
		}
		s.settle(id, w, exists, found)
	}
}

// wake tells this process's waiters what a commit of this process made of the
// key, so that they need not wait for the next look.
func (s *watches) wake(id keyID, found row) {
	s.mu.Lock()
	w := s.on[id]
	s.mu.Unlock()
	if w != nil {
		s.settle(id, w, true, found)
	}
}

func (s *watches) settle(id keyID, w *watch, exists bool, found row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.settled {
		return
	}
	if w.settled = true; exists {
		w.row = &found
	}
	if s.on[id] == w { // who comes later looks for himself
		delete(s.on, id)
	}
	close(w.seen)
}
