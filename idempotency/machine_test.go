package idempotency

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestMachine drives the ledger through random lives of two keys, one call
// after another, beside a model that is a few lines of Go and no SQL. Owners do
// not stop when they lose their claim: every claim ever granted may still try
// to record, release, give up or store a checkpoint.
func TestMachine(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.ledger(4, noWait)
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{d: d, l: l, scope: newOwner(), keys: map[Key]*modelKey{"k1": {}, "k2": {}}}
		rt.Repeat(map[string]func(*rapid.T){
			"Claim":      m.claim,
			"Do":         m.do,
			"Record":     m.record,
			"Release":    m.release,
			"GiveUp":     m.giveUp,
			"Checkpoint": m.checkpoint,
			"Settle":     m.settle,
			"Lapse":      m.lapse,
			"Reap":       m.reap,
			"":           m.check,
		})
	})
}

// modelKey is what the model knows of a key. The zero value is no row.
type modelKey struct {
	status    Status
	amount    int // stands for the fingerprint
	held      int // the index of the claim that holds it, or held it last
	attempt   int
	takeovers int
	lapsed    bool
	point     string
	body      string
	effects   int // recorded side effects, over all lives of the key
}

type machine struct {
	d      *database
	l      *Ledger
	scope  string
	keys   map[Key]*modelKey
	claims []Claim // every one ever granted
}

var (
	anyKey    = rapid.SampledFrom([]Key{"k1", "k2"})
	anyAmount = rapid.SampledFrom([]int{4900, 4900, 4900, 900000})
)

func (m *machine) request(key Key, amount int) Request {
	req := purchase(key, amount)
	req.Scope = m.scope
	return req
}

func (m *machine) claim(t *rapid.T) {
	key, amount := anyKey.Draw(t, "key"), anyAmount.Draw(t, "amount")
	k := m.keys[key]
	claim, answer, err := m.l.Claim(context.Background(), m.request(key, amount), nil)

	origin := Fresh
	switch {
	case k.status == "":
		*k = modelKey{amount: amount, effects: k.effects}
	case k.amount != amount:
		requireErr(t, err, ErrKeyReused)
		return
	case k.status == Completed:
		require.NoError(t, err)
		require.Equal(t, k.body, string(answer.Body))
		require.True(t, answer.Replayed)
		return
	case k.status == InProgress && !k.lapsed:
		requireErr(t, err, ErrInProgress)
		return
	case k.status == InProgress:
		origin = TakenOver
		k.takeovers++
	default:
		origin = Retaken
		k.takeovers = 0
	}
	require.NoError(t, err)
	require.NotNil(t, claim)
	if origin != TakenOver {
		k.point = PointClaimed
	}
	k.status, k.lapsed, k.held = InProgress, false, len(m.claims)
	k.attempt++
	require.Equal(t, origin, claim.Origin)
	require.Equal(t, k.attempt, claim.Attempt)
	require.Equal(t, k.takeovers, claim.Takeovers)
	require.Equal(t, k.point, claim.RecoveryPoint)
	m.claims = append(m.claims, *claim)
}

// do is the local shape under the same keys; its work fails now and then.
func (m *machine) do(t *rapid.T) {
	key, amount, fails := anyKey.Draw(t, "key"), anyAmount.Draw(t, "amount"), rapid.Bool().Draw(t, "fails")
	k := m.keys[key]
	errWork := errors.New("work")
	answer, err := m.l.Do(context.Background(), m.request(key, amount), func(_ context.Context, tx *Tx) (Response, error) {
		m.queueEffect(tx, key, 0)
		if fails {
			return Response{}, errWork
		}
		return Response{Status: 200, Type: "text/plain", Body: []byte("local")}, nil
	})
	switch {
	case k.status == "" && fails:
		requireErr(t, err, errWork)
	case k.status == "":
		require.NoError(t, err)
		require.False(t, answer.Replayed)
		*k = modelKey{status: Completed, amount: amount, attempt: 1, point: PointClaimed, body: "local", held: -1, effects: k.effects + 1}
	case k.amount != amount:
		requireErr(t, err, ErrKeyReused)
	case k.status == Completed:
		require.NoError(t, err)
		require.Equal(t, k.body, string(answer.Body))
	default:
		requireErr(t, err, ErrInProgress)
	}
}

// draw picks any claim ever granted. holds is true if it still is the one.
func (m *machine) draw(t *rapid.T) (index int, c Claim, k *modelKey, holds bool) {
	if len(m.claims) == 0 {
		t.Skip("no claim yet")
	}
	index = rapid.IntRange(0, len(m.claims)-1).Draw(t, "claim")
	c = m.claims[index]
	k = m.keys[c.Key]
	return index, c, k, k.status == InProgress && k.held == index
}

// lost is what an owner hears that does not hold its claim any more.
func (m *machine) lost(t *rapid.T, c Claim, k *modelKey, answer *Response, err error) {
	switch {
	case k.status == "":
		requireErr(t, err, ErrFenced)
	case k.status == Completed && m.request(c.Key, k.amount).Fingerprint == c.Fingerprint:
		require.NoError(t, err)
		require.Equal(t, k.body, string(answer.Body))
		require.True(t, answer.Replayed)
	default:
		requireErr(t, err, ErrInProgress)
	}
}

func (m *machine) record(t *rapid.T) {
	index, c, k, holds := m.draw(t)
	body := fmt.Sprintf("by claim %d", index)
	answer, err := m.l.Record(context.Background(), c, func(_ context.Context, tx *Tx) (Response, error) {
		m.queueEffect(tx, c.Key, c.Attempt)
		return Response{Status: 201, Type: "text/plain", Body: []byte(body)}, nil
	})
	if !holds {
		m.lost(t, c, k, &answer, err)
		return
	}
	require.NoError(t, err)
	require.False(t, answer.Replayed)
	k.status, k.body, k.lapsed, k.effects = Completed, body, false, k.effects+1
}

func (m *machine) release(t *rapid.T) {
	_, c, k, holds := m.draw(t)
	answer, err := m.l.Release(context.Background(), c, nothing)
	if !holds {
		m.lost(t, c, k, answer, err)
		return
	}
	require.NoError(t, err)
	require.Nil(t, answer)
	k.status, k.lapsed = FailedRetryable, false
}

func (m *machine) giveUp(t *rapid.T) {
	_, c, k, holds := m.draw(t)
	point := rapid.SampledFrom([]string{"called", "intent_created"}).Draw(t, "point")
	answer, err := m.l.GiveUp(context.Background(), c, point)
	if !holds {
		m.lost(t, c, k, answer, err)
		return
	}
	require.NoError(t, err)
	require.Nil(t, answer)
	k.point = point
	// The two seconds that are left: long enough for a slow machine, not to pass here.
	m.d.exec(`UPDATE idempotency_keys SET lease_until = lease_until + interval '1 minute' WHERE scope = $1 AND key = $2 AND lease_until > clock_timestamp()`, m.scope, c.Key)
}

func (m *machine) checkpoint(t *rapid.T) {
	_, c, k, holds := m.draw(t)
	point := rapid.SampledFrom([]string{"intent_created", "called"}).Draw(t, "point")
	err := m.l.Checkpoint(context.Background(), c, point, func(*Tx) {})
	if !holds {
		requireErr(t, err, ErrFenced)
		return
	}
	require.NoError(t, err)
	k.point = point
}

// settle is a webhook.
func (m *machine) settle(t *rapid.T) {
	key := anyKey.Draw(t, "key")
	k := m.keys[key]
	require.NoError(t, m.l.Transact(context.Background(), func(_ context.Context, tx *Tx) error {
		LockKey(tx, m.scope, key)
		m.l.Settle(tx, m.scope, key, Response{Status: 201, Type: "text/plain", Body: []byte("settled")})
		return nil
	}))
	if k.status == InProgress || k.status == FailedRetryable {
		k.status, k.body, k.lapsed = Completed, "settled", false
	}
}

func (m *machine) lapse(t *rapid.T) {
	key := anyKey.Draw(t, "key")
	m.d.exec(`UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 second' WHERE scope = $1 AND key = $2 AND status = 'in_progress'`, m.scope, key)
	k := m.keys[key]
	k.lapsed = k.status == InProgress
}

func (m *machine) reap(t *rapid.T) {
	m.d.exec(`UPDATE idempotency_keys SET completed_at = completed_at - interval '30 days' WHERE scope = $1`, m.scope)
	_, err := m.l.ReapOnce(context.Background(), Reap{Retention: 24 * time.Hour})
	require.NoError(t, err)
	for _, k := range m.keys {
		if k.status == Completed || k.status == FailedRetryable {
			*k = modelKey{effects: k.effects}
		}
	}
}

// check compares the rows with the model.
func (m *machine) check(t *rapid.T) {
	for key, k := range m.keys {
		found, exists, err := m.l.read(context.Background(), m.request(key, 0).id())
		require.NoError(t, err)
		require.Equal(t, k.status != "", exists, key)
		require.Equal(t, k.effects, ask[int](m.d, `SELECT count(*) FROM charges WHERE key = $1`, m.scope+string(key)), key)
		if !exists {
			continue
		}
		require.Equal(t, k.status, found.Status, key)
		require.Equal(t, k.attempt, found.Attempt, key)
		require.Equal(t, k.lapsed, found.Lapsed, key)
		require.Equal(t, k.point, found.RecoveryPoint, key)
		require.Equal(t, k.body, string(found.Response.Body), key)
	}
}

func (m *machine) queueEffect(tx *Tx, key Key, attempt int) {
	tx.Queue(`INSERT INTO charges (key, attempt) VALUES ($1, $2)`, m.scope+string(key), attempt)
}

func requireErr(t *rapid.T, err, want error) {
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}
