package racelab

import (
	"context"
	"sync"
)

// barrier opens when every party has arrived, or has ended without coming.
type barrier struct {
	mu      sync.Mutex
	missing map[int]bool
	open    chan struct{}
}

func newBarrier(parties int) *barrier {
	b := &barrier{missing: map[int]bool{}, open: make(chan struct{})}
	for n := 1; n <= parties; n++ {
		b.missing[n] = true
	}
	return b
}

// arrive says that nobody need wait for party n any more. last is true for the
// one call after which nobody is missing; it must call release.
func (b *barrier) arrive(n int) (last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.missing[n] {
		return false
	}
	delete(b.missing, n)
	return len(b.missing) == 0
}

func (b *barrier) release() { close(b.open) }

func (b *barrier) wait(ctx context.Context) error {
	select {
	case <-b.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signals are the cues of a script: who has come how far.
type signals struct {
	mu    sync.Mutex
	given map[string]chan struct{}
}

func (s *signals) channel(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given == nil {
		s.given = map[string]chan struct{}{}
	}
	if s.given[name] == nil {
		s.given[name] = make(chan struct{})
	}
	return s.given[name]
}

// give gives a cue, once.
func (s *signals) give(name string) {
	c := s.channel(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// await waits for a cue.
func (s *signals) await(ctx context.Context, name string) error {
	select {
	case <-s.channel(name):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
