package racelab

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// provider is the payment provider of the experiments with a remote charge. A
// charge there is a row that no transaction of the shop can undo. It remembers
// the keys that it was called with, as Stripe does.
type provider struct {
	*round
	mu    sync.Mutex
	keys  map[string]int64
	calls int
	asked int
}

// chargeSQL is the provider's own statement.
const chargeSQL = `INSERT INTO charges (key, amount) VALUES ($1, $2) RETURNING id`

// charge charges the card, once for each downstream key; without one, each time
// that it is called. during is how long the call takes, and may be nil. The
// provider does its work whether or not somebody still waits for the answer.
func (p *provider) charge(ctx context.Context, w *worker, downstream string, amount int64, during func() error) (int64, error) {
	start := time.Now()
	id, fresh, err := p.book(ctx, downstream, amount)
	if err != nil {
		return 0, err
	}
	note := "the provider gives back the charge it knows"
	if fresh {
		note = "the provider charges the card"
		w.events.charged(w, time.Now())
	}
	if during != nil {
		err = during()
	}
	w.events.add(w, EventCall, start, time.Now(), note)
	return id, err
}

func (p *provider) book(ctx context.Context, downstream string, amount int64) (id int64, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if id, known := p.keys[downstream]; known && downstream != "" {
		return id, false, nil
	}
	id, err = ask[int64](context.WithoutCancel(ctx), p.lab, chargeSQL, downstream, amount)
	if err != nil {
		return 0, false, fmt.Errorf("charging at the provider: %w", err)
	}
	if downstream != "" {
		p.keys[downstream] = id
	}
	return id, true, nil
}

// forget prunes the provider's keys, as Stripe does after 24 hours.
func (p *provider) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.keys)
}

// find asks the provider which charge it has made for the order; found is false
// if none. There is one order here, so all of its charges are that one's.
func (p *provider) find(ctx context.Context, w *worker) (id int64, found bool, err error) {
	p.mu.Lock()
	p.asked++
	p.mu.Unlock()
	start := time.Now()
	id, err = ask[int64](ctx, p.lab, `SELECT coalesce(min(id), 0) FROM charges`)
	w.events.add(w, EventCall, start, time.Now(), "the provider is asked what it charged for the order")
	return id, id != 0, err
}

// turnedAway counts a call that ends before anything is done: refused by the
// bank, or by a provider that is busy.
func (p *provider) turnedAway(w *worker, why string) {
	p.mu.Lock()
	p.calls++
	p.mu.Unlock()
	w.happened(EventCall, why)
}

func (p *provider) called() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}
