package web

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/idempotency"
)

// still is a ledger, and a checkout, in which nothing happens.
type still struct{ Service }

func (still) KeysOf(context.Context, int, ...string) ([]idempotency.KeyState, error) { return nil, nil }

func (still) History(context.Context, string, ...idempotency.Key) ([]idempotency.Entry, error) {
	return nil, nil
}

func (still) HistoryOf(context.Context, []idempotency.KeyState) ([]idempotency.Entry, error) {
	return nil, nil
}

func (still) Marks(context.Context, ...string) (map[string]string, error) { return nil, nil }

func (still) OrdersOf(context.Context, ...string) ([]checkout.Order, error) { return nil, nil }

func (w *ledgerWatch) isRunning() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running
}

// The poller runs while somebody watches, and no longer.
func TestThePollerRunsOnlyWhileSomebodyWatches(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{Ledger: still{}, Service: still{}, Log: slog.New(slog.DiscardHandler)}}
	w := newLedgerWatch(s)
	require.False(t, w.isRunning())
	for range 2 { // it starts again
		first, second := w.join("acct", ""), w.join("acct", "")
		require.True(t, w.isRunning())
		f := <-first.frames
		require.Equal(t, f, <-second.frames, "read once for both")
		w.leave(first)
		require.True(t, w.isRunning())
		w.leave(second)
		w.leave(second)
		require.Zero(t, w.visitors)
		require.Empty(t, w.accounts)
		require.Eventually(t, func() bool { return !w.isRunning() }, 30*time.Second, 10*time.Millisecond)
	}
	v := w.join("acct", "")
	w.close()
	require.Eventually(t, func() bool { return !w.isRunning() }, 30*time.Second, 10*time.Millisecond)
	require.Nil(t, w.join("acct", ""), "the shop is closing")
	w.leave(v)
}

// counting is a ledger at rest that notes how many accounts each reading is for.
type counting struct {
	still
	mu    sync.Mutex
	reads []int
}

func (c *counting) OrdersOf(_ context.Context, accounts ...string) ([]checkout.Order, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, len(accounts))
	return nil, nil
}

// As many visitors as there may be, each with an account: all of them are read,
// in turns that do not grow with them, and again only when that was long ago.
func TestAThousandWatchersAreReadInTurns(t *testing.T) {
	t.Parallel()
	ledger := &counting{}
	s := &Server{cfg: Config{Ledger: ledger, Service: ledger, Log: slog.New(slog.DiscardHandler)}}
	w := newLedgerWatch(s)
	defer w.close()
	w.running = true // the turns are this test's
	var visitors []*visitor
	for i := range maxVisitors {
		visitors = append(visitors, w.join(fmt.Sprintf("acct_%d", i), ""))
	}
	require.Nil(t, w.join("one too many", ""))
	accounts := w.watched()
	turns := 0
	for more := true; more; turns++ {
		<-w.kick
		require.NoError(t, w.turn(accounts))
		more = len(w.kick) > 0
	}
	require.Equal(t, maxVisitors/ledgerBatch, turns, "each begins at once")
	for _, v := range visitors {
		<-v.frames
	}
	require.NoError(t, w.turn(accounts))
	require.Equal(t, slices.Repeat([]int{ledgerBatch}, turns), ledger.reads, "and nothing is read while nothing happens")

	for _, a := range w.accounts {
		a.readAt = a.readAt.Add(-ledgerStale - time.Second)
	}
	for range int(ledgerStale / ledgerPoll) {
		require.NoError(t, w.turn(accounts))
		require.Empty(t, w.kick, "what is merely old waits for the tick")
	}
	for account, a := range w.accounts {
		require.Less(t, time.Since(a.readAt), ledgerStale, account)
	}
	require.Equal(t, slices.Repeat([]int{ledgerBatch}, 2*turns), ledger.reads)
}

func TestNobodyMayWatchTooOften(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{Ledger: still{}, Service: still{}, Log: slog.New(slog.DiscardHandler)}}
	w := newLedgerWatch(s)
	defer w.close()
	for range maxVisitorsPerAccount {
		require.NotNil(t, w.join("acct", ""))
	}
	require.Nil(t, w.join("acct", ""))
	require.NotNil(t, w.join("another", ""))
}

// A page that is slow to read gets what is newest, and holds up nobody.
func TestASlowPageGetsTheNewestContent(t *testing.T) {
	t.Parallel()
	v := &visitor{frames: make(chan *ledgerFrame, 1), seen: "0"}
	for _, mark := range []string{"0", "1", "2", "2", "3"} {
		v.offer(&ledgerFrame{mark: mark})
	}
	require.Equal(t, "3", (<-v.frames).mark)
	require.Empty(t, v.frames)
}
