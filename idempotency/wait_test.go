package idempotency

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A duplicate waits a moment for the first request's answer, and costs nothing
// while it does.
func TestWait(t *testing.T) {
	t.Parallel()
	const waiters = 64

	t.Run("HoldsNoConnection", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		pool := d.pool(1) // one for all of them
		l := d.ledgerOn(pool)
		c := mustClaim(t, l, purchase("k", 4900))
		answers, errs := make([]Response, waiters), make([]error, waiters)
		done := make(chan struct{})
		go func() {
			defer close(done)
			together(waiters, func(w int) { answers[w], errs[w] = duplicate(t.Context(), l) })
		}()
		l.awaitWaiters(t, waiters)

		// All of them wait, and the pool's only connection is to be had.
		soon, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, pool.Ping(soon))
		mustRecord(t, l, c)
		<-done
		for w := range waiters {
			require.NoError(t, errs[w])
			require.True(t, answers[w].Replayed)
			require.Equal(t, paid(1).Body, answers[w].Body)
		}
		require.Empty(t, l.watches.on, "nobody is watched any more")
	})

	t.Run("ALivingOwnerIsWaitedFor", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		first, second := d.ledger(2), d.ledger(2)
		c := mustClaim(t, first, purchase("k", 4900))
		waits, look := make(chan struct{}), second.watches.poll
		var once sync.Once
		second.watches.poll = func(ctx context.Context, id keyID) (row, bool, error) {
			once.Do(func() { close(waits) })
			return look(ctx, id)
		}
		type result struct {
			answer Response
			err    error
		}
		done := make(chan result, 1)
		go func() {
			answer, err := duplicate(t.Context(), second)
			done <- result{answer, err}
		}()
		select {
		case <-waits:
		case r := <-done:
			require.Fail(t, "the duplicate was turned away while the owner worked", "%v", r.err)
		}
		mustRecord(t, first, c)
		r := <-done
		require.NoError(t, r.err)
		require.True(t, r.answer.Replayed)
	})

	t.Run("OnePollerForAll", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		first, second := d.ledger(2), d.ledger(2) // two processes: nothing wakes the second one
		c := mustClaim(t, first, purchase("k", 4900))
		var polls, at, most atomic.Int32
		enough := make(chan struct{})
		look := second.watches.poll
		second.watches.poll = func(ctx context.Context, id keyID) (row, bool, error) {
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			if polls.Add(1) == 3 {
				close(enough)
			}
			return look(ctx, id)
		}
		answers, errs := make([]Response, waiters), make([]error, waiters)
		done := make(chan struct{})
		go func() {
			defer close(done)
			together(waiters, func(w int) { answers[w], errs[w] = duplicate(t.Context(), second) })
		}()
		second.awaitWaiters(t, waiters)
		<-enough
		mustRecord(t, first, c)
		<-done
		require.EqualValues(t, 1, most.Load(), "pollers at a time")
		for w := range waiters {
			require.NoError(t, errs[w])
			require.Equal(t, paid(1).Body, answers[w].Body)
		}
	})

	t.Run("EndsAfterItsLimit", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2, func(c *Config) { c.Wait = time.Millisecond })
		mustClaim(t, l, purchase("k", 4900))
		_, err := duplicate(t.Context(), l)
		require.ErrorIs(t, err, ErrInProgress)
		require.Empty(t, l.watches.on)
	})

	t.Run("EndsWithItsClient", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustClaim(t, l, purchase("k", 4900))
		ctx, hangUp := context.WithCancel(t.Context())
		hungUp := make(chan error, 1)
		go func() {
			_, _, err := l.Claim(ctx, purchase("k", 4900), nil)
			hungUp <- err
		}()
		l.awaitWaiters(t, 1)
		hangUp()
		require.ErrorIs(t, <-hungUp, context.Canceled)
		require.Empty(t, l.watches.on)
	})

	// What ends the wait, beside a record.
	for name, end := range map[string]func(*testing.T, *database, *Ledger, Claim){
		"OwnsWhatIsReleased":  func(t *testing.T, _ *database, l *Ledger, c Claim) { mustRelease(t, l, c) },
		"TakesOverWhatLapses": func(_ *testing.T, d *database, _ *Ledger, c Claim) { d.lapse(c.Key) },
		"ClaimsWhatIsGone":    func(_ *testing.T, d *database, _ *Ledger, _ Claim) { d.exec(`DELETE FROM idempotency_keys`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			l := d.ledger(2)
			c := mustClaim(t, l, purchase("k", 4900))
			answers, errs := make([]Response, waiters), make([]error, waiters)
			done := make(chan struct{})
			go func() {
				defer close(done)
				together(waiters, func(w int) {
					claim, answer, err := l.Claim(context.Background(), c.Request, nil)
					if claim != nil {
						answers[w], errs[w] = l.Record(context.Background(), *claim, recordPaid(*claim))
						return
					}
					answers[w], errs[w] = orZero(answer), err
				})
			}()
			l.awaitWaiters(t, waiters)
			end(t, d, l, c)
			<-done
			owners := 0
			for w := range waiters {
				switch {
				case errs[w] != nil: // it has waited once
					require.ErrorIs(t, errs[w], ErrInProgress)
				case !answers[w].Replayed:
					owners++
				}
			}
			require.Equal(t, 1, owners)
			require.Equal(t, 1, d.charges("k"))
		})
	}
}

// duplicate sends the request again, and must not be granted the key.
func duplicate(ctx context.Context, l *Ledger) (Response, error) {
	claim, answer, err := l.Claim(ctx, purchase("k", 4900), nil)
	if claim != nil {
		panic("a duplicate was granted the key")
	}
	return orZero(answer), err
}

// awaitWaiters waits until n requests wait for the key.
func (l *Ledger) awaitWaiters(t *testing.T, n int) {
	t.Helper()
	eventually(t, "the duplicates wait", func() bool {
		l.watches.mu.Lock()
		defer l.watches.mu.Unlock()
		w := l.watches.on[purchase("k", 4900).id()]
		return w != nil && w.waiters == n
	})
}
