package idempotency

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// The record phase: the outcome, the business rows and the answer are written
// together or not at all, and once.
func TestRecord(t *testing.T) {
	t.Parallel()

	t.Run("BusinessAndAnswerTogether", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		req := purchase("k", 4900)
		req.Params = []byte("frozen")
		c := mustClaim(t, l, req)
		require.Equal(t, paid(1), mustRecord(t, l, c))
		require.Equal(t, 1, d.charges("k"))
		require.True(t, ask[bool](d, `SELECT status = 'completed' AND params IS NULL AND lease_until IS NULL FROM idempotency_keys`),
			"the frozen parameters are needed for resending only")
	})

	t.Run("FailedWriteRecordsNothing", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		c := mustClaim(t, l, purchase("k", 4900))
		before := d.keyRow("k")
		errWrite := errors.New("no")
		for name, write := range map[string]func(context.Context, *Tx) (Response, error){
			"an error": func(_ context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, c)
				return Response{}, errWrite
			},
			"an error after a row was written": func(ctx context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, c)
				return Response{}, errors.Join(tx.Flush(ctx), errWrite)
			},
			"a statement that fails, queued": func(_ context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, c)
				tx.Queue(`SELECT 1/0`)
				return paid(1), nil
			},
			"a statement that fails, with COMMIT": func(ctx context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, c)
				err := tx.Flush(ctx)
				tx.Queue(`SELECT 1/0`)
				return paid(1), err
			},
			"a statement that fails, swallowed": func(ctx context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, c)
				_, _ = tx.Exec(ctx, `SELECT 1/0`)
				return paid(1), nil
			},
			"an answer that the schema refuses": func(_ context.Context, tx *Tx) (Response, error) {
				queueCharge(tx, c)
				return Response{Status: 99}, nil
			},
		} {
			_, err := l.Record(t.Context(), c, write)
			require.Error(t, err, name)
			require.Equal(t, before, d.keyRow("k"), name)
			require.Zero(t, d.charges("k"), name)
		}
		mustRecord(t, l, c) // the claim is still held
	})

	t.Run("LateOwnerWhomNobodyTookOver", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		for _, key := range []Key{"recorded", "released", "given up"} {
			c := mustClaim(t, l, purchase(key, 4900))
			d.exec(`UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 week' WHERE key = $1`, key)
			switch key {
			case "recorded": // a paid result is never thrown away
				mustRecord(t, l, c)
			case "released":
				mustRelease(t, l, c)
			default:
				answer, err := l.GiveUp(t.Context(), c, "called")
				require.NoError(t, err)
				require.Nil(t, answer)
			}
		}
	})

	t.Run("OneOfOwnerAndTakerWins", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(4)
		for range 20 {
			key := Key(newOwner())
			c := mustClaim(t, l, purchase(key, 4900))
			d.lapse(key)
			answers, errs := make([]Response, 2), make([]error, 2)
			together(2, func(w int) {
				if w == 0 {
					answers[w], errs[w] = l.Record(context.Background(), c, recordPaid(c))
					return
				}
				claim, answer, err := l.Claim(context.Background(), c.Request, nil)
				if claim != nil {
					answers[w], errs[w] = l.Record(context.Background(), *claim, recordPaid(*claim))
				} else if errs[w] = err; answer != nil {
					answers[w] = *answer
				}
			})
			require.NoError(t, errs[1])
			if errs[0] != nil { // it found the taker at work
				require.ErrorIs(t, errs[0], ErrInProgress)
			} else {
				require.Equal(t, answers[1].Body, answers[0].Body)
			}
			require.Equal(t, 1, d.charges(key))
		}
	})

	t.Run("RunsAgainAfterADeadlock", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		c := mustClaim(t, l, purchase("k", 4900))
		runs := 0
		answer, err := l.Record(t.Context(), c, func(ctx context.Context, tx *Tx) (Response, error) {
			queueCharge(tx, c)
			if runs++; runs < transactionTries {
				_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'as if' USING ERRCODE = '40P01'; END $$`)
				return Response{}, err
			}
			return paid(1), nil
		})
		require.NoError(t, err)
		require.Equal(t, paid(1), answer)
		require.Equal(t, 1, d.charges("k"))
	})

	t.Run("ReleaseFreesTheBusinessRow", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		d.exec(`INSERT INTO orders (account, id, intent) VALUES ('acct_1', '42', 'pi_1')`)
		c := mustClaim(t, l, purchase("k", 4900))
		_, err := l.Release(t.Context(), c, func(_ context.Context, tx *Tx) error {
			tx.Queue(`UPDATE orders SET intent = NULL`)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 1, ask[int](d, `SELECT count(*) FROM orders WHERE intent IS NULL`))
		require.True(t, ask[bool](d, `SELECT status = 'failed_retryable' AND lease_until IS NULL AND response_status IS NULL FROM idempotency_keys`))
	})

	t.Run("CheckpointStoresPointAndBusinessInOneRoundTrip", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 1)
		l := d.ledgerOn(pool)
		d.exec(`INSERT INTO orders (account, id) VALUES ('acct_1', '42')`)
		c := mustClaim(t, l, purchase("k", 4900))
		trips := 0
		proxy.on(func(trip) fate { trips++; return passes })
		stored := false
		require.NoError(t, l.Checkpoint(t.Context(), c, "intent_created", storeIntent(c, "pi_1", &stored)))
		proxy.on(nil)
		require.True(t, stored)
		require.Equal(t, 1, trips)
		require.NoError(t, l.Checkpoint(t.Context(), c, "intent_created", storeIntent(c, "pi_2", &stored)))
		require.False(t, stored, "stored once: the caller reads back which")
		require.Equal(t, "pi_1", ask[string](d, `SELECT intent FROM orders`))
		require.Equal(t, "intent_created", ask[string](d, `SELECT recovery_point FROM idempotency_keys`))
	})

	t.Run("HoldKeepsTheClaimWhileItLooks", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(4, noWait)
		c := mustClaim(t, l, purchase("k", 4900))
		d.lapse("k")
		type won struct {
			claim *Claim
			err   error
		}
		taker := make(chan won, 1)
		require.NoError(t, l.Hold(t.Context(), c, func(ctx context.Context, tx *Tx) error {
			if err := tx.Flush(ctx); err != nil { // the fence
				return err
			}
			go func() {
				claim, _, err := l.Claim(context.Background(), c.Request, nil)
				taker <- won{claim, err}
			}()
			d.blocked(1)
			require.Empty(t, taker)
			queueCharge(tx, c)
			return nil
		}))
		w := <-taker
		require.NoError(t, w.err)
		require.Equal(t, 2, w.claim.Attempt)
		require.Equal(t, 1, d.charges("k"))
	})
}
