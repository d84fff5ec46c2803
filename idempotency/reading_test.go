package idempotency

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a page shows of a key is what the rows say.
func TestReading(t *testing.T) {
	t.Parallel()

	t.Run("AKeyAsItStands", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		east := d.ledger(2, func(c *Config) { c.Instance, c.Lease = "east", time.Minute })
		west := d.ledger(2, func(c *Config) { c.Instance = "west" })
		mustClaim(t, east, purchase("running", 4900))
		mustRelease(t, east, mustClaim(t, east, purchase("released", 4900)))
		mustClaim(t, east, purchase("taken", 4900))
		d.lapse("taken")
		taken := mustClaim(t, west, purchase("taken", 4900))
		answer := mustRecord(t, west, taken)
		_, _, err := west.Claim(t.Context(), purchase("taken", 4900), nil)
		require.NoError(t, err)
		require.NoError(t, west.Close(t.Context()), "writes the replay")
		mustClaim(t, east, purchase("lapsed", 4900))
		d.lapse("lapsed")

		keys, err := east.Keys(t.Context(), "acct_1", 100)
		require.NoError(t, err)
		require.Equal(t, []Key{"lapsed", "taken", "released", "running"}, names(keys), "newest first")
		for _, k := range keys {
			require.Equal(t, "acct_1", k.Scope)
			require.Equal(t, purchase(k.Key, 4900).Operation, k.Operation)
			require.Equal(t, purchase(k.Key, 4900).Fingerprint, k.Fingerprint)
			require.False(t, k.CreatedAt.IsZero())
			require.False(t, k.ReadAt.Before(k.CreatedAt))
			require.Equal(t, k.Status == InProgress, k.CompletedAt.IsZero())
			require.Equal(t, k.Status == Completed, k.Response.Status != 0)
		}
		lapsed, done, released, running := keys[0], keys[1], keys[2], keys[3]
		require.Negative(t, lapsed.LeaseLeft)
		require.Greater(t, running.LeaseLeft, 30*time.Second)
		require.LessOrEqual(t, running.LeaseLeft, time.Minute)
		require.Equal(t, "east", running.Instance)
		require.Equal(t, FailedRetryable, released.Status)
		require.Zero(t, released.LeaseLeft)
		require.Equal(t, "west", done.Instance, "who took over")
		require.Equal(t, taken.Owner, done.Owner)
		require.Equal(t, 2, done.Attempt)
		require.Equal(t, 1, done.Takeovers)
		require.Equal(t, 1, done.Replays)
		require.True(t, done.Response.equal(answer))

		few, err := east.Keys(t.Context(), "acct_1", 2)
		require.NoError(t, err)
		require.Equal(t, []Key{"lapsed", "taken"}, names(few))
	})

	t.Run("NobodySeesAnotherScope", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mine, theirs := purchase("mine", 4900), purchase("theirs", 4900)
		theirs.Scope = "other"
		mustClaim(t, l, mine)
		mustClaim(t, l, theirs)
		keys, err := l.Keys(t.Context(), "acct_1", 100)
		require.NoError(t, err)
		require.Equal(t, []Key{"mine"}, names(keys))
		history, err := l.History(t.Context(), "acct_1", "theirs")
		require.NoError(t, err)
		require.Empty(t, history)
		both, err := l.KeysOf(t.Context(), 1, "other", "acct_1", "nobody")
		require.NoError(t, err)
		require.Equal(t, []Key{"theirs", "mine"}, names(both), "in the order of scopes")
		history, err = l.HistoryOf(t.Context(), both)
		require.NoError(t, err)
		require.Len(t, history, 2)
		require.Equal(t, Key("theirs"), history[0].Key)
	})

	t.Run("SpansLeadToTheirEntries", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(4, func(c *Config) { c.Lease = time.Minute })
		first := mustClaim(t, l, purchase("k", 4900))
		require.NoError(t, l.Checkpoint(t.Context(), first, "intent_created", func(*Tx) {}))
		_, err := l.GiveUp(t.Context(), first, "called")
		require.NoError(t, err)
		d.lapse("k")
		second := mustClaim(t, l, purchase("k", 4900))
		begun := time.Now()
		waiting := make(chan error, 1)
		go func() {
			_, _, err := l.Claim(t.Context(), purchase("k", 4900), nil)
			waiting <- err
		}()
		eventually(t, "the duplicate waits", func() bool {
			l.watches.mu.Lock()
			defer l.watches.mu.Unlock()
			return len(l.watches.on) == 1
		})
		mustRecord(t, l, second)
		require.NoError(t, <-waiting)
		waitedAtMost := time.Since(begun)
		require.NoError(t, l.Close(t.Context()))

		h, err := l.History(t.Context(), "acct_1", "k", "no such key")
		require.NoError(t, err)
		var whats []What
		for i, e := range h {
			whats = append(whats, e.What)
			require.True(t, i == 0 || !e.At.Before(h[i-1].At))
		}
		require.Equal(t, []What{WhatClaimed, WhatCheckpoint, WhatUnknown, WhatTakenOver, WhatCompleted, WhatReplayed}, whats)
		claimed, checkpoint, unknown, taken, completed, replayed := h[0], h[1], h[2], h[3], h[4], h[5]
		for _, grant := range []Entry{claimed, taken} {
			require.True(t, grant.What.Grants())
			require.Positive(t, grant.Waited)
			require.Positive(t, grant.Took)
			require.Zero(t, grant.Held)
			require.Equal(t, time.Minute, grant.Lease)
		}
		require.Equal(t, first.Owner, claimed.Owner)
		require.Equal(t, second.Owner, completed.Owner)
		require.Equal(t, "intent_created", checkpoint.Point)
		require.Positive(t, checkpoint.Held)
		require.Positive(t, checkpoint.Took)
		require.Greater(t, unknown.Held, checkpoint.Held)
		require.Equal(t, unknownLease, unknown.Lease)
		require.Equal(t, 201, completed.Status)
		require.Equal(t, len(paid(2).Body), completed.Bytes)
		require.Positive(t, completed.Held)
		require.Positive(t, completed.Took)
		require.False(t, completed.Settled)
		// The owner learned of its claim after the entry was written, and before
		// its record began.
		granted := completed.At.Add(-completed.Took - completed.Held)
		require.True(t, granted.After(taken.At))
		require.True(t, granted.Before(completed.At.Add(-completed.Took)))
		require.GreaterOrEqual(t, replayed.Waited, completed.Took, "it came before the record, and waited for all of it")
		require.Less(t, replayed.Waited, waitedAtMost)
	})

	t.Run("WhatSomebodyElseSettledSaysSo", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustClaim(t, l, purchase("k", 4900))
		require.NoError(t, l.Transact(t.Context(), func(_ context.Context, tx *Tx) error {
			LockKey(tx, "acct_1", "k")
			l.Settle(tx, "acct_1", "k", Response{Status: 201, Type: "application/json", Body: []byte(`{}`)})
			return nil
		}))
		h, err := l.History(t.Context(), "acct_1", "k")
		require.NoError(t, err)
		require.True(t, h[len(h)-1].Settled)
		require.Zero(t, h[len(h)-1].Held, "not known")
	})

	t.Run("MarksChangeWithEveryEventAndWithNothingElse", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		last := ""
		marks := func() string {
			t.Helper()
			m, err := l.Marks(t.Context(), "acct_1", "other")
			require.NoError(t, err)
			require.Len(t, m, 2)
			require.Equal(t, "0-0-0", m["other"])
			return m["acct_1"]
		}
		changed := func(what string) {
			t.Helper()
			now := marks()
			require.NotEqual(t, last, now, what)
			require.Equal(t, now, marks(), "nothing happened since")
			last = now
		}
		changed("empty")
		c := mustClaim(t, l, purchase("k", 4900))
		changed("claimed")
		require.NoError(t, l.Checkpoint(t.Context(), c, "intent_created", func(*Tx) {}))
		changed("checkpoint")
		mustRelease(t, l, c)
		changed("released")
		mustRecord(t, l, mustClaim(t, l, purchase("k", 4900)))
		changed("completed")
		d.exec(`DELETE FROM key_history`)
		d.exec(`DELETE FROM idempotency_keys`)
		changed("reaped")
		none, err := l.Marks(t.Context())
		require.NoError(t, err)
		require.Empty(t, none)
	})

	t.Run("OldEntriesWithoutSpansAreRead", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustClaim(t, l, purchase("k", 4900))
		d.exec(`UPDATE key_history SET detail = '{"waited": -5, "took": 1e300, "held": 1.5, "unheard": "of"}'`)
		h, err := l.History(t.Context(), "acct_1", "k")
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 0, 1500 * time.Microsecond}, []time.Duration{h[0].Waited, h[0].Took, h[0].Held})
	})
}

func names(keys []KeyState) (list []Key) {
	for _, k := range keys {
		list = append(list, k.Key)
	}
	return list
}

// reading reads what the ledger holds, in every way.
func reading(t *testing.T, l *Ledger) {
	t.Helper()
	ctx := context.Background()
	keys, err := l.Keys(ctx, "acct_1", 10)
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	history, err := l.HistoryOf(ctx, keys)
	require.NoError(t, err)
	require.NotEmpty(t, history)
	marks, err := l.Marks(ctx, "acct_1")
	require.NoError(t, err)
	require.Len(t, marks, 1)
}
