package idempotency

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Others than a key's owner: who learned the outcome from elsewhere, and the
// completer, who finds what an owner has left.
func TestOthers(t *testing.T) {
	t.Parallel()
	settled := Response{Status: 201, Type: "text/plain", Body: []byte("by webhook")}

	t.Run("SettledIsReplayedAndFencesTheOwner", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		for key, leave := range map[Key]func(Claim){
			"in progress": func(Claim) {},
			"lapsed":      func(c Claim) { d.lapse(c.Key) },
			"retryable":   func(c Claim) { mustRelease(t, l, c) },
		} {
			c := mustClaim(t, l, purchase(key, 4900))
			leave(c)
			require.NoError(t, settle(l, key, settled))
			_, replay, err := l.Claim(t.Context(), c.Request, nil)
			require.NoError(t, err, key)
			require.Equal(t, settled.Body, replay.Body, key)
			late, err := l.Record(t.Context(), c, recordPaid(c))
			require.NoError(t, err, key)
			require.Equal(t, settled.Body, late.Body, key)
			require.Zero(t, d.charges(key), key)
		}
	})

	t.Run("CompletedIsLeftAsItIs", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustRecord(t, l, mustClaim(t, l, purchase("k", 4900)))
		before, history := d.keyRow("k"), d.history("k")
		require.NoError(t, settle(l, "k", settled))
		require.NoError(t, settle(l, "gone", settled))
		require.Equal(t, before, d.keyRow("k"))
		require.Equal(t, history, d.history("k"))
		require.Empty(t, d.history("gone"))
	})

	t.Run("NoBodyIsAnAnswerToo", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustClaim(t, l, purchase("k", 4900))
		require.NoError(t, settle(l, "k", Response{Status: 204}))
	})

	t.Run("AbandonedIsDueBySchedule", func(t *testing.T) {
		t.Parallel()
		completer(t, newDatabase(t), nil)
	})

	t.Run("OneOfManyCompletersTakesOver", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(8)
		mustClaim(t, l, purchase("k", 4900))
		d.lapse("k")
		due, err := l.Due(t.Context(), Schedule{0}, 10)
		require.NoError(t, err)
		require.Len(t, due, 1)
		claims, errs := make([]*Claim, 8), make([]error, 8)
		together(8, func(w int) { claims[w], errs[w] = l.TakeOver(context.Background(), due[0], noBusiness) })
		owners := 0
		for w := range claims {
			require.NoError(t, errs[w])
			if claims[w] != nil {
				owners++
			}
		}
		require.Equal(t, 1, owners)
		require.Equal(t, 1, ask[int](d, `SELECT completer_tries FROM idempotency_keys`))
	})
}

// completer walks through the completer's whole schedule.
func completer(t *testing.T, d *database, l *Ledger) {
	t.Helper()
	ctx := context.Background()
	if l == nil {
		l = d.ledger(2)
	}
	schedule := Schedule{time.Second, time.Hour}
	first := mustClaim(t, l, purchase("abandoned", 4900))
	due := func() int {
		list, err := l.Due(ctx, schedule, 10)
		require.NoError(t, err)
		return len(list)
	}
	lapsedFor := func(interval string) {
		d.exec(`UPDATE idempotency_keys SET lease_until = clock_timestamp() - $1::interval WHERE key = 'abandoned'`, interval)
	}
	require.Zero(t, due(), "its owner may live")
	lapsedFor("0.1 s")
	require.Zero(t, due(), "not yet")
	for tries, ago := range []string{"2 s", "61 minutes"} {
		lapsedFor(ago)
		list, err := l.Due(ctx, schedule, 10)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, tries, list[0].Tries)
		require.Equal(t, first.Operation, list[0].Operation)
		c, err := l.TakeOver(ctx, list[0], noBusiness)
		require.NoError(t, err)
		require.Equal(t, tries+2, c.Attempt)
		require.False(t, c.Clean())
		require.Equal(t, first.Fingerprint, c.Fingerprint)
		again, err := l.TakeOver(ctx, list[0], noBusiness)
		require.NoError(t, err)
		require.Nil(t, again, "its new owner lives")
		_, err = l.GiveUp(ctx, *c, "called")
		require.NoError(t, err)
		lapsedFor("59 minutes")
		require.Zero(t, due(), "it backs off")
	}
	stuck, err := l.Stuck(ctx, schedule, 10)
	require.NoError(t, err)
	require.Len(t, stuck, 1, "it waits for a person")
	require.NoError(t, l.AskAgain(ctx, "acct_1", "abandoned"))
	require.Equal(t, 1, due())
	require.ErrorIs(t, l.AskAgain(ctx, "acct_1", "unknown"), ErrNotStuck)
	require.NoError(t, settle(l, "abandoned", paid(3)))
	require.Zero(t, due())
}

// settle completes a key as a webhook does.
func settle(l *Ledger, key Key, answer Response) error {
	return l.Transact(context.Background(), func(_ context.Context, tx *Tx) error {
		LockKey(tx, "acct_1", key)
		l.Settle(tx, "acct_1", key, answer)
		return nil
	})
}

func noBusiness(context.Context, *Tx, Claim) error { return nil }
