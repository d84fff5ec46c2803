package idempotency

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// B's third word, identity: a key belongs to one request. The fingerprint is
// compared first, whatever the row's state; another request changes nothing,
// and above all never takes over.
func TestIdentity(t *testing.T) {
	t.Parallel()

	cheap := purchase("k", 4900)
	dear := purchase("k", 900000)
	refund := cheap
	refund.Operation = "POST /payments/42/refunds"
	other := cheap
	other.Operation = "POST /orders/43/payments"
	another := map[string]Request{
		"OtherAmount": dear, "OtherOperation": refund, "OtherPathParameter": other,
	}

	states := map[string]struct {
		bring func(*database, *Ledger)
		want  ReusedError
	}{
		"Completed": {
			func(_ *database, l *Ledger) { mustRecord(t, l, mustClaim(t, l, cheap)) },
			ReusedError{Status: Completed, Operation: cheap.Operation, ResponseStatus: 201},
		},
		"InProgress": {
			func(_ *database, l *Ledger) { mustClaim(t, l, cheap) },
			ReusedError{Status: InProgress, Operation: cheap.Operation},
		},
		"Lapsed": {
			func(d *database, l *Ledger) { mustClaim(t, l, cheap); d.lapse("k") },
			ReusedError{Status: InProgress, Operation: cheap.Operation},
		},
		"FailedRetryable": {
			func(_ *database, l *Ledger) { mustRelease(t, l, mustClaim(t, l, cheap)) },
			ReusedError{Status: FailedRetryable, Operation: cheap.Operation},
		},
	}
	for state, s := range states {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			l := d.ledger(2)
			s.bring(d, l)
			before := d.keyRow("k")
			for name, req := range another {
				_, _, err := l.Claim(t.Context(), req, func(context.Context, *Tx, Claim) error {
					return errors.New("another request was granted the key")
				})
				requireReused(t, s.want, err, name)
				_, err = l.Do(t.Context(), req, func(context.Context, *Tx) (Response, error) {
					return Response{}, errors.New("another request was granted the key")
				})
				requireReused(t, s.want, err, name)
			}
			require.Equal(t, before, d.keyRow("k"), "the row is as it was")
		})
	}

	// Two that see the same lapsed row: the statement of the takeover itself
	// names the request, since the row may be another one's by then.
	t.Run("TheTakeoverNamesTheRequest", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		mustClaim(t, l, cheap)
		d.lapse("k")
		for _, origin := range []Origin{TakenOver, Retaken} {
			claim, err := l.claim(t.Context(), dear, newOwner(), origin, nil)
			require.NoError(t, err)
			require.Nil(t, claim, origin)
		}
	})

	t.Run("SettledTellsWhetherAnotherKeyIsSafe", func(t *testing.T) {
		t.Parallel()
		for e, settled := range map[ReusedError]bool{
			{Status: Completed, ResponseStatus: 201}: true,
			{Status: Completed, ResponseStatus: 402}: true,
			{Status: Completed, ResponseStatus: 202}: false,
			{Status: InProgress}:                     false,
			{Status: FailedRetryable}:                true,
		} {
			require.Equal(t, settled, e.Settled(), e)
		}
	})
}

func requireReused(t *testing.T, want ReusedError, err error, name string) {
	t.Helper()
	require.ErrorIs(t, err, ErrKeyReused, name)
	var got *ReusedError
	require.ErrorAs(t, err, &got, name)
	require.Equal(t, want, *got, name)
}
