package idempotency

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// B's second word, memory: the outcome is stored, and a replay returns it.
func TestReplay(t *testing.T) {
	t.Parallel()

	t.Run("SameBytes", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		first, second := d.ledger(2), d.ledger(2)
		for key, answer := range map[Key]Response{
			// What a jsonb column would answer with: {"a": 100, "b": 1, "aa": 2}
			"order and numbers": {Status: 201, Type: "application/json", Body: []byte(`{"b":1,"aa":2,"a":1.10,"a":1e2}`)},
			"white space":       {Status: 200, Type: "application/json", Body: []byte("{ \"a\" : 1 }\r\n\t\n")},
			"a decline":         {Status: 402, Type: "application/problem+json", Body: []byte(`{"code":"card_declined"}`)},
			"a challenge":       {Status: 202, Type: "application/json; charset=utf-8", Body: []byte(`{}`)},
			"a stored failure":  {Status: 500, Type: "text/plain", Body: []byte("no")},
			"not text":          {Status: 200, Type: "application/octet-stream", Body: []byte{0, 0xff, 0xfe, '\\', 0}},
			"empty":             {Status: 204, Type: "", Body: []byte{}},
			"large":             {Status: 200, Type: "text/plain", Body: bytes.Repeat([]byte("0123456789abcdef"), 1<<16)},
		} {
			req := purchase(key, 4900)
			c := mustClaim(t, first, req)
			got, err := first.Record(t.Context(), c, func(context.Context, *Tx) (Response, error) { return answer, nil })
			require.NoError(t, err, key)
			require.Equal(t, answer, got, key)

			for _, l := range []*Ledger{first, second} {
				claim, replay, err := l.Claim(t.Context(), req, nil)
				require.NoError(t, err, key)
				require.Nil(t, claim, key)
				require.True(t, replay.Replayed, key)
				replay.Replayed = false
				require.Equal(t, answer, *replay, key)

				byDo, err := l.Do(t.Context(), req, nil)
				require.NoError(t, err, key)
				require.True(t, byDo.Replayed, key)
				require.Equal(t, answer.Body, byDo.Body, key)
			}
		}
	})

	t.Run("NoBodyIsAnAnswerToo", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2)
		_, err := l.Record(t.Context(), mustClaim(t, l, purchase("k", 4900)), func(context.Context, *Tx) (Response, error) {
			return Response{Status: 204}, nil
		})
		require.NoError(t, err)
		_, replay, err := l.Claim(t.Context(), purchase("k", 4900), nil)
		require.NoError(t, err)
		require.Equal(t, 204, replay.Status)
		require.Empty(t, replay.Body)
	})

	t.Run("IsOneStatement", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		proxy, pool := newProxy(d, 1)
		l := d.ledgerOn(pool)
		mustRecord(t, l, mustClaim(t, l, purchase("k", 4900)))
		var trips []trip
		proxy.on(func(r trip) fate {
			trips = append(trips, r)
			return passes
		})
		_, _, err := l.Claim(t.Context(), purchase("k", 4900), nil)
		require.NoError(t, err)
		proxy.on(nil)
		require.Equal(t, []trip{{selectRow}}, trips)
	})

	t.Run("WhileTheOwnerWorksTellsWhenToComeBack", func(t *testing.T) {
		t.Parallel()
		d := newDatabase(t)
		l := d.ledger(2, noWait)
		c := mustClaim(t, l, purchase("k", 4900))
		requireComeBack(t, l, time.Second) // a lease of a minute says nothing about the call

		_, err := l.GiveUp(t.Context(), c, PointClaimed)
		require.NoError(t, err)
		requireComeBack(t, l, 2*time.Second) // what is left of the lease, rounded up

		d.exec(`UPDATE idempotency_keys SET lease_until = clock_timestamp() + interval '0.9 s'`)
		requireComeBack(t, l, time.Second) // never less
	})
}

// requireComeBack looks at a key whose lease has not lapsed.
func requireComeBack(t *testing.T, l *Ledger, after time.Duration) {
	t.Helper()
	claim, answer, err := l.Claim(context.Background(), purchase("k", 4900), nil)
	require.Nil(t, claim)
	require.Nil(t, answer)
	require.ErrorIs(t, err, ErrInProgress)
	var e *InProgressError
	require.ErrorAs(t, err, &e)
	require.Equal(t, after, e.RetryAfter)
}
