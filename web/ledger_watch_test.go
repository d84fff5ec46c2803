package web

import (
	"context"
	"log/slog"
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
