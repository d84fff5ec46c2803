package idempotency

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// A COMMIT whose answer is lost is neither done nor undone. The connection is
// cut around it, for real, in three ways: it was executed, it never arrived, and
// it is executed later, while the ledger already looks what became of it.
func TestCommitInDoubt(t *testing.T) {
	t.Parallel()
	// Each operation, from a state before it, with what must hold after it
	// whatever became of its COMMIT. All go through the proxy's pool.
	operations := map[string]struct {
		before func(*testing.T, *database, *Ledger) Claim
		run    func(*testing.T, *Ledger, Claim)
		after  func(*testing.T, *database)
	}{
		"Claim": {
			func(*testing.T, *database, *Ledger) Claim { return Claim{} },
			func(t *testing.T, l *Ledger, _ Claim) {
				c := mustClaim(t, l, purchase("k", 4900))
				require.Equal(t, Fresh, c.Origin)
				require.Equal(t, 1, c.Attempt)
				mustRecord(t, l, c)
			},
			func(t *testing.T, d *database) {
				require.Equal(t, []string{"claimed", "completed"}, d.history("k"))
			},
		},
		"Takeover": {
			func(t *testing.T, d *database, l *Ledger) Claim {
				c := mustClaim(t, l, purchase("k", 4900))
				d.lapse("k")
				return c
			},
			func(t *testing.T, l *Ledger, before Claim) {
				c := mustClaim(t, l, before.Request)
				require.Equal(t, TakenOver, c.Origin)
				require.Equal(t, 2, c.Attempt)
				require.Equal(t, 1, c.Takeovers)
				mustRecord(t, l, c)
			},
			func(t *testing.T, d *database) {
				require.Equal(t, []string{"claimed", "taken_over", "completed"}, d.history("k"))
			},
		},
		"Retake": {
			func(t *testing.T, _ *database, l *Ledger) Claim {
				c := mustClaim(t, l, purchase("k", 4900))
				mustRelease(t, l, c)
				return c
			},
			func(t *testing.T, l *Ledger, before Claim) {
				c := mustClaim(t, l, before.Request)
				require.Equal(t, Retaken, c.Origin)
				require.Equal(t, 2, c.Attempt)
				mustRecord(t, l, c)
			},
			func(t *testing.T, d *database) {
				require.Equal(t, []string{"claimed", "released", "retaken", "completed"}, d.history("k"))
			},
		},
		"Record": {
			func(t *testing.T, _ *database, l *Ledger) Claim { return mustClaim(t, l, purchase("k", 4900)) },
			func(t *testing.T, l *Ledger, c Claim) { require.Equal(t, paid(1), mustRecord(t, l, c)) },
			func(t *testing.T, d *database) {
				require.Equal(t, []string{"claimed", "completed"}, d.history("k"))
			},
		},
		"Do": {
			func(*testing.T, *database, *Ledger) Claim { return Claim{} },
			func(t *testing.T, l *Ledger, _ Claim) {
				answer, err := l.Do(t.Context(), purchase("k", 4900), placeOrder("k"))
				require.NoError(t, err)
				require.Equal(t, paid(1), answer)
			},
			func(t *testing.T, d *database) {
				require.Equal(t, []string{"claimed", "completed"}, d.history("k"))
			},
		},
		"Release": {
			func(t *testing.T, _ *database, l *Ledger) Claim { return mustClaim(t, l, purchase("k", 4900)) },
			func(t *testing.T, l *Ledger, c Claim) {
				mustRelease(t, l, c)
				mustRecord(t, l, mustClaim(t, l, c.Request))
			},
			func(t *testing.T, d *database) {
				require.Equal(t, []string{"claimed", "released", "retaken", "completed"}, d.history("k"))
			},
		},
	}
	for name, op := range operations {
		for _, f := range []fate{answerLost, neverArrives, arrivesLate} {
			t.Run(name+f.String(), func(t *testing.T) {
				t.Parallel()
				d := newDatabase(t)
				proxy, pool := newProxy(d, 2)
				l := d.ledgerOn(pool)
				before := op.before(t, d, l)
				proxy.once("COMMIT", f)
				done := make(chan struct{})
				go func() { // the late COMMIT is let through when the look-up waits for it
					defer close(done)
					if f == arrivesLate {
						defer proxy.deliver(t) // also if nothing waits for it, or the test would hang
						d.blocked(1)
					}
				}()
				t.Cleanup(func() { <-done })
				op.run(t, l, before)
				<-done
				op.after(t, d)
				require.Equal(t, 1, d.charges("k"), "recorded side effects")
			})
		}
	}

	t.Run("TheRowDecidesAfterACheckpoint", func(t *testing.T) {
		t.Parallel()
		for f, point := range map[fate]string{answerLost: "intent_created", neverArrives: PointClaimed} {
			d := newDatabase(t)
			proxy, pool := newProxy(d, 2)
			l := d.ledgerOn(pool)
			c := mustClaim(t, l, purchase("k", 4900))
			proxy.once("COMMIT", f)
			require.ErrorIs(t, l.Checkpoint(t.Context(), c, "intent_created", func(*Tx) {}), ErrCommitUnknown)
			require.NoError(t, l.Hold(t.Context(), c, nothing)) // waits for what is in doubt
			require.Equal(t, point, ask[string](d, `SELECT recovery_point FROM idempotency_keys`))
		}
	})

	// The record never arrived, and before the owner looks, a webhook completes
	// the key: the row's bytes are the answer, not the owner's.
	t.Run("CompletedBySomeoneElseMeanwhile", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 2)
		l := d.ledgerOn(pool)
		c := mustClaim(t, l, purchase("k", 4900))
		cut := false
		proxy.on(func(r trip) fate {
			switch {
			case r.has("COMMIT") && !cut:
				cut = true
				return neverArrives
			case r.has("SELECT operation") && cut:
				completeAside(d, "k")
			}
			return passes
		})
		answer, err := l.Record(t.Context(), c, recordPaid(c))
		require.NoError(t, err)
		require.Equal(t, Response{Status: 201, Type: "text/plain", Body: []byte("by webhook"), Replayed: true}, answer)
		require.Zero(t, d.charges("k"))
	})

	// The database goes away in mid-COMMIT and does not come back. Nobody may
	// say that nothing was claimed.
	for name, run := range map[string]func(*Ledger, Claim) error{
		"Claim": func(l *Ledger, _ Claim) error {
			_, _, err := l.Claim(context.Background(), purchase("k", 4900), nil)
			return err
		},
		"Do": func(l *Ledger, _ Claim) error {
			_, err := l.Do(context.Background(), purchase("k", 4900), placeOrder("k"))
			return err
		},
		"Record": func(l *Ledger, c Claim) error {
			_, err := l.Record(context.Background(), c, recordPaid(c))
			return err
		},
		"Release": func(l *Ledger, c Claim) error {
			_, err := l.Release(context.Background(), c, nothing)
			return err
		},
	} {
		t.Run(name+"WithTheDatabaseGoneIsUnknown", func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			proxy, pool := newProxy(d, 2)
			l := d.ledgerOn(pool)
			var c Claim
			if name == "Record" || name == "Release" {
				c = mustClaim(t, l, purchase("k", 4900))
			}
			proxy.once("COMMIT", refused)
			err := run(l, c)
			require.ErrorIs(t, err, ErrCommitUnknown)
			require.NotErrorIs(t, err, ErrOverloaded)
		})
	}

	// A client that hangs up while COMMIT is on its way puts nothing in doubt.
	t.Run("HangUpDuringCommitChangesNothing", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 2)
		l := d.ledgerOn(pool)
		ctx, hangUp := context.WithCancel(t.Context())
		proxy.on(func(r trip) fate {
			if r.has("COMMIT") {
				hangUp()
			}
			return passes
		})
		claim, _, err := l.Claim(ctx, purchase("k", 4900), nil)
		require.NoError(t, err)
		require.Equal(t, 1, claim.Attempt)
	})

	t.Run("HangUpBeforeCommitClaimsNothing", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		ctx, hangUp := context.WithCancel(t.Context())
		_, _, err := l.Claim(ctx, purchase("k", 4900), func(ctx context.Context, tx *Tx, _ Claim) error {
			defer hangUp()
			return tx.Flush(ctx)
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, d.keyRow("k"))
	})
}

// Every round trip of a whole operation is cut in every way, none is left out;
// then the client sends the same request with the same key again. However the
// line was cut, the side effect is recorded once and every answer is the same.
func TestCutLine(t *testing.T) {
	t.Parallel()
	operations := map[string]func(*Ledger, Key) (Response, error){
		"Remote": func(l *Ledger, key Key) (Response, error) {
			claim, answer, err := l.Claim(context.Background(), purchase(key, 4900), nil)
			if err != nil || answer != nil {
				return orZero(answer), err
			}
			if err := l.Checkpoint(context.Background(), *claim, "intent_created", func(*Tx) {}); err != nil {
				return Response{}, err
			}
			return l.Record(context.Background(), *claim, recordPaid(*claim))
		},
		"Local": func(l *Ledger, key Key) (Response, error) {
			return l.Do(context.Background(), purchase(key, 4900), placeOrder(key))
		},
	}
	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			client := d.ledger(2, noWait) // the retries come over another line
			for _, f := range []fate{answerLost, neverArrives} {
				for cut := 1; ; cut++ {
					key := Key(newOwner())
					proxy, pool := newProxy(d, 2)
					l := d.ledgerOn(pool, noWait)
					warm(t, l)
					trips := 0
					proxy.on(func(trip) fate {
						if trips++; trips == cut {
							return f
						}
						return passes
					})
					first, firstErr := operation(l, key)
					proxy.on(nil)
					if trips < cut {
						require.NoError(t, firstErr)
						require.Greater(t, cut, 3, "the operation has several round trips")
						break
					}
					retry, err := operation(client, key)
					if err != nil { // the claim stood: its owner is gone, its lease lapses
						require.ErrorIs(t, err, ErrInProgress, "trip %d, %s", cut, f)
						d.lapse(key)
						retry, err = operation(client, key)
					}
					require.NoError(t, err, "trip %d, %s", cut, f)
					if firstErr == nil {
						require.Equal(t, retry.Body, first.Body, "trip %d, %s", cut, f)
					}
					require.Equal(t, 1, d.charges(key), "trip %d, %s", cut, f)
				}
			}
		})
	}
}

// warm opens a connection, so that no round trip is spent on it later.
func warm(t *testing.T, l *Ledger) {
	t.Helper()
	require.NoError(t, l.pool.AcquireFunc(t.Context(), func(c *pgxpool.Conn) error { return c.Ping(t.Context()) }))
}

func orZero(r *Response) Response {
	if r == nil {
		return Response{}
	}
	return *r
}

// placeOrder is the work of a local operation.
func placeOrder(key Key) func(context.Context, *Tx) (Response, error) {
	return func(_ context.Context, tx *Tx) (Response, error) {
		queueCharge(tx, Claim{Request: Request{Key: key}, Attempt: 1})
		return paid(1), nil
	}
}

// TestLostBeforeCommit: a line that is lost before COMMIT was sent leaves no
// doubt. Nothing was claimed, and the same request does it all.
func TestLostBeforeCommit(t *testing.T) {
	t.Parallel()
	claim := func(t *testing.T, l *Ledger) error {
		_, _, err := l.Claim(t.Context(), purchase("k", 4900), nil)
		return err
	}
	do := func(t *testing.T, l *Ledger) error {
		_, err := l.Do(t.Context(), purchase("k", 4900), placeOrder("k"))
		return err
	}
	for name, run := range map[string]func(*testing.T, *Ledger) error{"Claim": claim, "Do": do} {
		for at, text := range map[string]string{"TheRead": "SELECT", "TheInsert": "INSERT INTO idempotency_keys"} {
			for _, f := range []fate{answerLost, neverArrives} {
				t.Run(name+"/"+at+f.String(), func(t *testing.T) {
					t.Parallel()
					d := newDatabase(t)
					proxy, pool := newProxy(d, 2)
					l := d.ledgerOn(pool)
					proxy.once(text, f)
					require.ErrorIs(t, run(t, l), ErrOverloaded)
					require.Empty(t, d.history("k"), "nothing was claimed")
					require.NoError(t, run(t, l))
				})
			}
		}
	}
}
