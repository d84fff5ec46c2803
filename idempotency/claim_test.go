package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// B's first word, exclusion: only one request per key may run the side effect.
func TestClaim(t *testing.T) {
	t.Parallel()

	t.Run("FreshKeyIsGranted", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		req := purchase("k", 4900)
		req.Params = []byte(`{"frozen":true}`)
		c := mustClaim(t, d.ledger(2), req)
		require.Equal(t, Fresh, c.Origin)
		require.True(t, c.Clean())
		require.Equal(t, 1, c.Attempt)
		require.Zero(t, c.Takeovers)
		require.Equal(t, PointClaimed, c.RecoveryPoint)
		require.Equal(t, req.Params, c.Params)
		require.Equal(t, []string{"claimed"}, d.history("k"))
		require.True(t, ask[bool](d, `SELECT lease_until BETWEEN clock_timestamp() + interval '50 s' AND clock_timestamp() + interval '60 s' FROM idempotency_keys`),
			"the lease is the default, by the database's clock")
	})

	for _, workers := range []int{8, 64} {
		for _, conns := range []int32{2, 4, 8} {
			t.Run(fmt.Sprintf("OneOf%dOwnsOnPoolsOf%d", workers, conns), func(t *testing.T) {
				t.Parallel()
				oneOwns(t, workers, conns)
			})
		}
	}

	// Looking first finds no row, as the other one did.
	t.Run("OneThatIsNotCommittedYetIsWaitedFor", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(4, noWait)
		granted, release := make(chan struct{}), make(chan struct{})
		claims := make(chan *Claim, 2)
		claim := func(business Business) {
			c, _, err := l.Claim(context.Background(), purchase("k", 4900), business)
			if err != nil && !errors.Is(err, ErrInProgress) {
				t.Error(err)
			}
			claims <- c
		}
		go claim(func(ctx context.Context, tx *Tx, _ Claim) error {
			err := tx.Flush(ctx)
			close(granted)
			<-release
			return err
		})
		<-granted
		go claim(nil)
		eventually(t, "the second one waits, or has its answer", func() bool {
			return len(claims) > 0 || ask[int](d, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, d.schema) > 0
		})
		close(release)
		owners := 0
		for range 2 {
			if c := <-claims; c != nil {
				owners++
			}
		}
		require.Equal(t, 1, owners)
	})

	t.Run("BusinessRowsComeWithTheKey", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		_, _, err := l.Claim(t.Context(), purchase("k", 4900), func(_ context.Context, tx *Tx, c Claim) error {
			require.Equal(t, Fresh, c.Origin)
			tx.Queue(`INSERT INTO orders (account, id) VALUES ($1, '42')`, c.Scope)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 1, ask[int](d, `SELECT count(*) FROM orders`))
	})

	t.Run("RefusedByTheBusinessLeavesNoTrace", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		errTaken := errors.New("slot taken")
		for name, business := range map[string]Business{
			"at once": func(context.Context, *Tx, Claim) error { return errTaken },
			"after a row was written": func(ctx context.Context, tx *Tx, c Claim) error {
				_, err := tx.Exec(ctx, `INSERT INTO orders (account, id) VALUES ($1, '42')`, c.Scope)
				return errors.Join(err, errTaken)
			},
			"by a row that is queued": func(_ context.Context, tx *Tx, c Claim) error {
				tx.Queue(`INSERT INTO orders (account, id) VALUES ($1, '42')`, c.Scope)
				tx.Queue(`SELECT 1`).Exec(func(commandTag) error { return errTaken })
				return nil
			},
		} {
			claim, answer, err := l.Claim(t.Context(), purchase("k", 4900), business)
			require.ErrorIs(t, err, errTaken, name)
			require.Nil(t, claim, name)
			require.Nil(t, answer, name)
			require.Empty(t, d.keyRow("k"), name)
			require.Empty(t, d.history("k"), name)
			require.Zero(t, ask[int](d, `SELECT count(*) FROM orders`), name)
		}
		mustClaim(t, l, purchase("k", 4900))
	})

	t.Run("RunsAgainAfterASerializationFailure", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		runs := 0
		c, _, err := d.ledger(2).Claim(t.Context(), purchase("k", 4900), func(ctx context.Context, tx *Tx, _ Claim) error {
			if runs++; runs > 2 {
				return nil
			}
			_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'as if' USING ERRCODE = '40001'; END $$`)
			return err
		})
		require.NoError(t, err)
		require.Equal(t, 3, runs)
		require.Equal(t, 1, c.Attempt)
	})

	t.Run("VanishedRowIsClaimedAgain", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 2)
		inserts := vanish(d, proxy, 1)
		c := mustClaim(t, d.ledgerOn(pool), purchase("k", 4900))
		require.EqualValues(t, 2, inserts.Load(), "claimed on attempt 2")
		require.Equal(t, 1, c.Attempt)
	})

	t.Run("RowThatKeepsVanishingIsContended", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 2)
		inserts := vanish(d, proxy, 1000)
		claim, answer, err := d.ledgerOn(pool).Claim(t.Context(), purchase("k", 4900), nil)
		require.ErrorIs(t, err, ErrClaimContended)
		require.Nil(t, claim)
		require.Nil(t, answer)
		require.EqualValues(t, claimTries, inserts.Load())
	})

	t.Run("ScopesDoNotMeet", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mine, theirs := purchase("k", 4900), purchase("k", 900000)
		theirs.Scope = "acct_2"
		mustRecord(t, l, mustClaim(t, l, mine))
		mustClaim(t, l, theirs)
	})

	t.Run("OverloadedClaimsNothing", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		pool := d.pool(1)
		l := d.ledgerOn(pool, func(c *Config) { c.AcquireWait = time.Millisecond })
		held, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		_, _, err = l.Claim(t.Context(), purchase("k", 4900), nil)
		held.Release()
		require.ErrorIs(t, err, ErrOverloaded)
		require.Empty(t, d.keyRow("k"))
	})

	t.Run("LockTimeoutIsOverload", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		other, err := d.direct.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = other.Rollback(context.Background()) }()
		_, err = other.Exec(t.Context(), `LOCK TABLE key_history`)
		require.NoError(t, err)
		l := d.ledgerOn(d.pool(1, lockTimeout))
		_, _, err = l.Claim(t.Context(), purchase("k", 4900), nil)
		require.ErrorIs(t, err, ErrOverloaded)
		require.NoError(t, other.Rollback(t.Context()))
		require.Empty(t, d.keyRow("k"))
	})
}

// oneOwns runs a whole remote operation in many workers of two processes, all
// at once: one side effect, one recorded, and the same bytes for everyone.
func oneOwns(t *testing.T, workers int, conns int32) {
	d := newDatabase(t)
	processes := []*Ledger{d.ledger(conns), d.ledger(conns)}
	var effects atomic.Int32
	answers, errs := make([]Response, workers), make([]error, workers)
	together(workers, func(w int) {
		l := processes[w%2]
		claim, answer, err := l.Claim(context.Background(), purchase("k", 4900), nil)
		if claim != nil {
			effects.Add(1)
			answers[w], errs[w] = l.Record(context.Background(), *claim, recordPaid(*claim))
			return
		}
		if errs[w] = err; answer != nil {
			answers[w] = *answer
		}
	})
	requireOneFresh(t, answers, errs)
	require.EqualValues(t, 1, effects.Load(), "side effects")
	require.Equal(t, 1, d.charges("k"), "recorded side effects")
}

// vanish makes the claim's next INSERTs, so many of them, lose against a row
// that is gone when the loser looks for it: what the reaper can do, for certain.
func vanish(d *database, p *proxy, times int32) *atomic.Int32 {
	var inserts atomic.Int32
	p.on(func(r trip) fate {
		switch {
		case r.has("INSERT INTO idempotency_keys"):
			if inserts.Add(1) <= times {
				insertGhost(d)
			}
		case r.has("FROM idempotency_keys"):
			d.exec(`DELETE FROM idempotency_keys WHERE owner = 'ghost'`)
		}
		return passes
	})
	return &inserts
}

// insertGhost gives the key to an owner who is soon gone.
func insertGhost(d *database) {
	d.exec(`INSERT INTO idempotency_keys (scope, key, operation, request_hash, status, owner, lease_until)
		VALUES ('acct_1', 'k', 'ghost', sha256('ghost'), 'in_progress', 'ghost', clock_timestamp() + interval '1 minute')`)
}
