package idempotency

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The local shape: claim, work and record in one transaction.
func TestDo(t *testing.T) {
	t.Parallel()

	for _, workers := range []int{8, 64} {
		for _, conns := range []int32{2, 4, 8} {
			t.Run(fmt.Sprintf("LosersReplay%dOnPoolsOf%d", workers, conns), func(t *testing.T) {
				t.Parallel()
				d := newDatabase(t)
				processes := []*Ledger{d.ledger(conns), d.ledger(conns)}
				answers, errs := make([]Response, workers), make([]error, workers)
				together(workers, func(w int) {
					answers[w], errs[w] = processes[w%2].Do(context.Background(), purchase("k", 4900), placeOrder("k"))
				})
				requireOneFresh(t, answers, errs)
				require.Equal(t, 1, d.charges("k"))
			})
		}
	}

	t.Run("LosersWaitForTheWinner", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(8)
		answers, errs := raceWinner(t, d, l, nil)
		requireOneFresh(t, answers, errs)
		require.False(t, answers[0].Replayed, "the first was the winner")
		require.Equal(t, 1, d.charges("k"))
	})

	t.Run("WinnerRollsBackOneWaiterOwns", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(8)
		errWork := errors.New("out of stock")
		answers, errs := raceWinner(t, d, l, errWork)
		require.ErrorIs(t, errs[0], errWork)
		requireOneFresh(t, answers[1:], errs[1:])
		require.Equal(t, 1, d.charges("k"))
		require.Equal(t, []string{"claimed", "completed"}, withoutReplays(d.history("k")))
	})

	t.Run("ErrorLeavesNoTrace", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		errWork := errors.New("out of stock")
		for name, work := range map[string]func(context.Context, *Tx) (Response, error){
			"an error": func(_ context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, Claim{Request: purchase("k", 4900)})
				return Response{}, errWork
			},
			"an error after a row was written": func(ctx context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, Claim{Request: purchase("k", 4900)})
				return Response{}, errors.Join(tx.Flush(ctx), errWork)
			},
			"a statement that fails": func(_ context.Context, tx *Tx) (Response, error) {
				tx.Queue(`SELECT 1/0`)
				return paid(1), nil
			},
			"an answer that the schema refuses": func(_ context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, Claim{Request: purchase("k", 4900)})
				return Response{Status: 99}, nil
			},
		} {
			_, err := l.Do(t.Context(), purchase("k", 4900), work)
			require.Error(t, err, name)
			require.Empty(t, d.keyRow("k"), name)
			require.Empty(t, d.history("k"), name)
			require.Zero(t, d.charges("k"), name)
		}
		answer, err := l.Do(t.Context(), purchase("k", 4900), placeOrder("k"))
		require.NoError(t, err)
		require.False(t, answer.Replayed)
	})

	t.Run("VanishedRowIsClaimedAgain", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 2)
		inserts := vanish(d, proxy, 2)
		answer, err := d.ledgerOn(pool).Do(t.Context(), purchase("k", 4900), placeOrder("k"))
		require.NoError(t, err)
		require.False(t, answer.Replayed)
		require.EqualValues(t, 3, inserts.Load())
	})

	t.Run("RowThatKeepsVanishingIsContended", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 2)
		vanish(d, proxy, 1000)
		_, err := d.ledgerOn(pool).Do(t.Context(), purchase("k", 4900), placeOrder("k"))
		require.ErrorIs(t, err, ErrClaimContended)
		require.Zero(t, d.charges("k"))
	})

	// A loser of every INSERT still looks at who won the last one.
	t.Run("LastLossIsLookedAt", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 2)
		inserts := 0
		proxy.on(func(r trip) fate {
			switch {
			case r.has("INSERT INTO idempotency_keys"):
				if inserts++; inserts == claimTries {
					mustRecord(t, d.ledger(2), mustClaim(t, d.ledger(2), purchase("k", 4900)))
				} else {
					insertGhost(d)
				}
			case r.has("FROM idempotency_keys"):
				d.exec(`DELETE FROM idempotency_keys WHERE owner = 'ghost'`)
			}
			return passes
		})
		answer, err := d.ledgerOn(pool).Do(t.Context(), purchase("k", 4900), placeOrder("k"))
		proxy.on(nil)
		require.NoError(t, err)
		require.True(t, answer.Replayed)
		require.Equal(t, paid(1).Body, answer.Body)
	})

	t.Run("MeetsARemoteOperationInProgress", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustClaim(t, l, purchase("k", 4900))
		_, err := l.Do(t.Context(), purchase("k", 4900), placeOrder("k"))
		require.ErrorIs(t, err, ErrInProgress)
		require.Zero(t, d.charges("k"))
	})

	t.Run("RunsAgainAfterASerializationFailure", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		runs := 0
		_, err := d.ledger(2).Do(t.Context(), purchase("k", 4900), func(ctx context.Context, tx *Tx) (Response, error) {
			if runs++; runs == 1 {
				_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'as if' USING ERRCODE = '40001'; END $$`)
				return Response{}, err
			}
			return placeOrder("k")(ctx, tx)
		})
		require.NoError(t, err)
		require.Equal(t, 1, d.charges("k"))
	})
}

// raceWinner runs eight of one request, of which the first is at its work while
// the seven others wait for it in the server. Then its work ends, with err.
func raceWinner(t *testing.T, d *database, l *Ledger, err error) ([]Response, []error) {
	t.Helper()
	const workers = 8
	answers, errs := make([]Response, workers), make([]error, workers)
	working := make(chan struct{})
	together(workers, func(w int) {
		if w == 0 {
			answers[w], errs[w] = l.Do(context.Background(), purchase("k", 4900), func(ctx context.Context, tx *Tx) (Response, error) {
				close(working)
				d.blocked(workers - 1)
				if err != nil {
					return Response{}, err
				}
				return placeOrder("k")(ctx, tx)
			})
			return
		}
		<-working
		answers[w], errs[w] = l.Do(context.Background(), purchase("k", 4900), placeOrder("k"))
	})
	return answers, errs
}

// requireOneFresh holds that all have one answer, and one of them made it.
func requireOneFresh(t *testing.T, answers []Response, errs []error) {
	t.Helper()
	fresh := 0
	for w := range answers {
		require.NoError(t, errs[w])
		require.Equal(t, answers[0].Status, answers[w].Status)
		require.Equal(t, answers[0].Body, answers[w].Body)
		if !answers[w].Replayed {
			fresh++
		}
	}
	require.Equal(t, 1, fresh, "fresh answers")
}

// withoutReplays leaves out what is written some time later.
func withoutReplays(history []string) (rest []string) {
	for _, what := range history {
		if what != "replayed" {
			rest = append(rest, what)
		}
	}
	return rest
}
