package idempotency

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// TestLinearizable lets workers of two processes loose on one key and holds
// that what they saw can be put in one order, in which each call happened at one
// moment between its start and its end. Some calls are cut off from the database
// half-way: what became of them is unknown, so the model goes on with both.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("Seed%d", seed), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			h := &recorder{start: time.Now()}
			processes := []*Ledger{d.ledger(4, noWait), d.ledger(4, noWait)}
			together(6, func(w int) {
				random := rand.New(rand.NewPCG(seed, uint64(w)))
				for range 12 {
					if random.IntN(3) == 0 {
						h.run(call{op: "lapse"}, func() (result, bool) {
							d.exec(`UPDATE idempotency_keys SET lease_until = clock_timestamp() - interval '1 second' WHERE status = 'in_progress'`)
							return result{}, true
						})
						continue
					}
					h.turn(d, processes[w%2], random)
				}
			})
			ordered := porcupine.CheckOperationsTimeout(keyModel.ToModel(), h.operations, patience)
			require.Equal(t, porcupine.Ok, ordered, "%v", h.operations)
			require.LessOrEqual(t, d.charges("k"), 1)
		})
	}
}

// call is what is asked of the ledger, and result what it said.
type call struct {
	op      string // claim, record, release, lapse
	amount  int    // of a claim
	attempt int    // of an owner's call
	body    string // of a record
}

type result struct {
	verdict string // granted, done, replay, busy, reused, unknown
	attempt int    // if granted
	body    string // if replayed
}

// recorder keeps the history of calls.
type recorder struct {
	start      time.Time
	mu         sync.Mutex
	operations []porcupine.Operation
}

// run records a call. One whose outcome is unknown may take effect at any later
// time, and so never ends.
func (h *recorder) run(in call, do func() (result, bool)) {
	called := time.Since(h.start).Nanoseconds()
	out, known := do()
	returned := time.Since(h.start).Nanoseconds()
	if !known {
		out, returned = result{verdict: "unknown"}, math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{
		ClientId: len(h.operations), Input: in, Call: called, Output: out, Return: returned,
	})
}

// turn claims the key and, if it is granted, ends the claim or forgets it.
func (h *recorder) turn(d *database, l *Ledger, random *rand.Rand) {
	ctx := context.Background()
	amount := 4900
	if random.IntN(6) == 0 {
		amount = 900000
	}
	var claim *Claim
	through := h.line(d, l, random)
	h.run(call{op: "claim", amount: amount}, func() (result, bool) {
		var (
			answer *Response
			err    error
		)
		claim, answer, err = through.Claim(ctx, purchase("k", amount), nil)
		if claim != nil {
			return result{verdict: "granted", attempt: claim.Attempt}, true
		}
		return heard(answer, err)
	})
	if claim == nil || random.IntN(4) == 0 {
		return
	}
	through = h.line(d, l, random)
	if random.IntN(3) == 0 {
		h.run(call{op: "release", attempt: claim.Attempt}, func() (result, bool) {
			return heard(through.Release(ctx, *claim, nothing))
		})
		return
	}
	body := string(paid(claim.Attempt).Body)
	h.run(call{op: "record", attempt: claim.Attempt, body: body}, func() (result, bool) {
		return heard(answered(through.Record(ctx, *claim, recordPaid(*claim))))
	})
}

// line gives the ledger, or now and then one that is cut off from the database
// at some round trip, for good.
func (h *recorder) line(d *database, l *Ledger, random *rand.Rand) *Ledger {
	if random.IntN(5) != 0 {
		return l
	}
	h.mu.Lock() // the test's list of what to clean up
	defer h.mu.Unlock()
	proxy, pool := newProxy(d, 2)
	cut, how, trips := 1+random.IntN(4), []fate{answerLost, neverArrives}[random.IntN(2)], 0
	proxy.on(func(trip) fate {
		switch trips++; {
		case trips == cut:
			return how
		case trips > cut:
			return refused
		}
		return passes
	})
	return d.ledgerOn(pool, noWait)
}

// heard is what the ledger said. known is false where it could not say.
func heard(answer *Response, err error) (r result, known bool) {
	switch {
	case err == nil && answer != nil && answer.Replayed:
		return result{verdict: "replay", body: string(answer.Body)}, true
	case err == nil:
		return result{verdict: "done"}, true
	case errors.Is(err, ErrInProgress):
		return result{verdict: "busy"}, true
	case errors.Is(err, ErrKeyReused):
		return result{verdict: "reused"}, true
	}
	return result{}, false
}

// keyState is the model's key.
type keyState struct {
	status  Status
	amount  int
	attempt int
	lapsed  bool
	body    string
}

var keyModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{keyState{}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(keyState), input.(call), output.(result)
		next, want := s.after(in)
		switch {
		case out.verdict == "unknown":
			return []any{s, next}
		case out == want:
			return []any{next}
		}
		return nil
	},
}

// after gives what a call makes of the key, and what it says.
func (s keyState) after(in call) (keyState, result) {
	switch {
	case in.op == "lapse":
		s.lapsed = s.status == InProgress
		return s, result{}
	case in.op == "claim":
		switch {
		case s.status == "":
			s.amount = in.amount
		case s.amount != in.amount:
			return s, result{verdict: "reused"}
		case s.status == Completed:
			return s, result{verdict: "replay", body: s.body}
		case s.status == InProgress && !s.lapsed:
			return s, result{verdict: "busy"}
		}
		s.status, s.lapsed = InProgress, false
		s.attempt++
		return s, result{verdict: "granted", attempt: s.attempt}
	case s.status == InProgress && s.attempt == in.attempt: // the owner's
		s.lapsed = false
		s.status = FailedRetryable
		if in.op == "record" {
			s.status, s.body = Completed, in.body
		}
		return s, result{verdict: "done"}
	case s.status == Completed:
		return s, result{verdict: "replay", body: s.body}
	}
	return s, result{verdict: "busy"}
}
