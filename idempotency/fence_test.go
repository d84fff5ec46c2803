package idempotency

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// A zombie is an owner that wakes after its claim was lost. Whatever it still
// wants to write, nothing is written, and it answers from the row.
func TestFence(t *testing.T) {
	t.Parallel()

	// How the claim was lost while its owner slept.
	losses := map[string]struct {
		lose func(*testing.T, *database, *Ledger, Claim)
		// answer is what the row then has; nil while another owner is at work.
		answer *Response
	}{
		"TakenOver": {
			func(t *testing.T, d *database, l *Ledger, c Claim) {
				d.lapse(c.Key)
				mustClaim(t, l, c.Request)
			}, nil,
		},
		"TakenOverAndCompleted": {
			func(t *testing.T, d *database, l *Ledger, c Claim) {
				d.lapse(c.Key)
				mustRecord(t, l, mustClaim(t, l, c.Request))
			}, &Response{Status: 201, Type: "application/json", Body: paid(2).Body, Replayed: true},
		},
		// As a webhook does: nobody took over, so owner and attempt still match.
		"CompletedBySomeoneElse": {
			func(_ *testing.T, d *database, _ *Ledger, c Claim) { completeAside(d, c.Key) },
			&Response{Status: 201, Type: "text/plain", Body: []byte("by webhook"), Replayed: true},
		},
		"ReleasedAndRetaken": {
			func(t *testing.T, _ *database, l *Ledger, c Claim) {
				mustRelease(t, l, c)
				mustClaim(t, l, c.Request)
			}, nil,
		},
		"Released": {
			func(t *testing.T, _ *database, l *Ledger, c Claim) { mustRelease(t, l, c) }, nil,
		},
	}

	// What the zombie tries, with a business row each.
	tries := map[string]func(*Ledger, Claim) (*Response, error){
		"Record": func(l *Ledger, c Claim) (*Response, error) {
			return answered(l.Record(context.Background(), c, func(_ context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, c)
				return Response{Status: 402, Type: "text/plain", Body: []byte("by zombie")}, nil
			}))
		},
		"Release": func(l *Ledger, c Claim) (*Response, error) {
			return l.Release(context.Background(), c, func(_ context.Context, tx *Tx) error {
				queueCharge(tx, c)
				return nil
			})
		},
		"GiveUp": func(l *Ledger, c Claim) (*Response, error) {
			return l.GiveUp(context.Background(), c, "zombie")
		},
	}

	for loss, by := range losses {
		for try, zombie := range tries {
			t.Run(try+"After"+loss, func(t *testing.T) {
				t.Parallel()
				d := newDatabase(t)
				l := d.ledger(2)
				c := mustClaim(t, l, purchase("k", 4900))
				by.lose(t, d, l, c)
				row, charges := d.keyRow("k"), d.charges("k")

				answer, err := zombie(l, c)
				if by.answer == nil {
					require.ErrorIs(t, err, ErrInProgress)
					require.Nil(t, answer)
				} else {
					require.NoError(t, err)
					require.Equal(t, by.answer, answer)
				}
				require.Equal(t, row, d.keyRow("k"))
				require.Equal(t, charges, d.charges("k"))
			})
		}

		t.Run("CheckpointAndHoldAfter"+loss, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			l := d.ledger(2)
			d.exec(`INSERT INTO orders (account, id) VALUES ('acct_1', '42')`)
			c := mustClaim(t, l, purchase("k", 4900))
			by.lose(t, d, l, c)
			row, history := d.keyRow("k"), d.history("k")

			require.ErrorIs(t, l.Checkpoint(t.Context(), c, "zombie", storeIntent(c, "pi_zombie", nil)), ErrFenced)
			require.ErrorIs(t, l.Hold(t.Context(), c, func(_ context.Context, tx *Tx) error {
				queueCharge(tx, c)
				return nil
			}), ErrFenced)
			require.Equal(t, row, d.keyRow("k"))
			require.Equal(t, history, d.history("k"))
			require.Zero(t, ask[int](d, `SELECT count(*) FROM orders WHERE intent IS NOT NULL`))
		})
	}

	t.Run("GoneAltogether", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		c := mustClaim(t, l, purchase("k", 4900))
		d.exec(`DELETE FROM idempotency_keys`)
		for name, zombie := range tries {
			answer, err := zombie(l, c)
			require.ErrorIs(t, err, ErrFenced, name)
			require.Nil(t, answer, name)
		}
		require.Zero(t, d.charges("k"))
	})

	t.Run("SwallowedByTheCallerStillRollsBack", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		c := mustClaim(t, l, purchase("k", 4900))
		d.lapse("k")
		mustClaim(t, l, c.Request)
		_, err := l.Record(t.Context(), c, func(ctx context.Context, tx *Tx) (Response, error) {
			_ = tx.Flush(ctx)
			queueCharge(tx, c)
			return paid(1), nil
		})
		require.ErrorIs(t, err, ErrInProgress)
		require.Zero(t, d.charges("k"))
	})

	t.Run("LockedKeyIsAFence", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		_, err := raceTakeover(t, d, l, func(c Claim) (rows int64, err error) {
			return 0, l.Checkpoint(context.Background(), c, "intent_created", storeIntent(c, "pi_zombie", nil))
		})
		require.ErrorIs(t, err, ErrFenced)
		require.Equal(t, "pi_taker", ask[string](d, `SELECT intent FROM orders`))
	})

	t.Run("FenceAloneInOneStatement", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		rows, err := raceTakeover(t, d, l, func(c Claim) (int64, error) {
			tag, err := l.pool.Exec(context.Background(), Fence+`
				UPDATE orders SET intent = $5 FROM fence WHERE account = $1 AND id = $6`, c.Fenced("pi_zombie", "42")...)
			return tag.RowsAffected(), err
		})
		require.NoError(t, err)
		require.Zero(t, rows)
		require.Equal(t, "pi_taker", ask[string](d, `SELECT intent FROM orders`))
	})

	// Why Fence locks. If this test ever fails, PostgreSQL has changed, and the
	// lock may go.
	t.Run("ExistsIsNoFence", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		rows, err := raceTakeover(t, d, l, func(c Claim) (int64, error) {
			tag, err := l.pool.Exec(context.Background(), `
				UPDATE orders SET intent = $5 WHERE account = $1 AND id = $6 AND EXISTS (
					SELECT 1 FROM idempotency_keys
					 WHERE scope = $1 AND key = $2 AND owner = $3 AND attempt = $4 AND status = 'in_progress')`,
				c.Fenced("pi_zombie", "42")...)
			return tag.RowsAffected(), err
		})
		require.NoError(t, err)
		require.EqualValues(t, 1, rows)
		require.Equal(t, "pi_zombie", ask[string](d, `SELECT intent FROM orders`), "written by an owner that was taken over")
	})
}

// completeAside completes a key as settling by a webhook does, which is nobody's
// claim.
func completeAside(d *database, key Key) {
	d.exec(`UPDATE idempotency_keys SET status = 'completed', lease_until = NULL, completed_at = clock_timestamp(),
		response_status = 201, response_type = 'text/plain', response_body = 'by webhook' WHERE key = $1`, key)
}

// storeIntent queues a business statement of a checkpoint, under the fence.
func storeIntent(c Claim, intent string, stored *bool) func(*Tx) {
	return func(tx *Tx) {
		tx.Queue(Fence+`
			UPDATE orders SET intent = $5 FROM fence WHERE account = $1 AND id = $6 AND intent IS NULL`,
			c.Fenced(intent, "42")...).Exec(func(tag pgconn.CommandTag) error {
			if stored != nil {
				*stored = tag.RowsAffected() == 1
			}
			return nil
		})
	}
}

// raceTakeover has a taker hold the key and the order, changed but not yet
// committed, when the zombie's statement comes; and commits once the zombie
// waits in the server. It returns what the zombie wrote.
func raceTakeover(t *testing.T, d *database, l *Ledger, zombie func(Claim) (rows int64, err error)) (rows int64, err error) {
	t.Helper()
	d.exec(`INSERT INTO orders (account, id) VALUES ('acct_1', '42')`)
	c := mustClaim(t, l, purchase("k", 4900))
	d.lapse("k")
	woke := make(chan struct{})
	_, claimErr := l.claim(t.Context(), c.Request, newOwner(), TakenOver, func(ctx context.Context, tx *Tx, _ Claim) error {
		if _, err := tx.Exec(ctx, `UPDATE orders SET intent = 'pi_taker'`); err != nil {
			return err
		}
		go func() {
			defer close(woke)
			rows, err = zombie(c)
		}()
		d.blocked(1)
		return nil
	})
	require.NoError(t, claimErr)
	<-woke
	return rows, err
}
