package web_test

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/idempotency/racelab"
)

// TestLabSweepKeepsItsFigures: the address of a run over all experiments shows
// what that run measured, whoever runs one of them later.
func TestLabSweepKeepsItsFigures(t *testing.T) {
	t.Parallel()
	var charges atomic.Int64
	lab := &handLab{shows: func(name string) []racelab.VariantResult {
		if name != "check-then-insert" {
			return []racelab.VariantResult{}
		}
		return []racelab.VariantResult{charged("ask-first", int(charges.Load()))}
	}}
	s := withLab(t, lab)
	charges.Store(8)
	first := s.send(request(http.MethodPost, "/lab/runs", `{}`, []with{header("Content-Type", "application/json")}))
	require.Equal(t, 201, first.status, string(first.body))
	address := first.header.Get("Location")
	charges.Store(7)
	other := *s
	other.cookie = s.newCustomer()
	require.Equal(t, 201, other.runs("check-then-insert", `{}`).status)

	const then, later = "8 charges; $392.00", "7 charges; $343.00"
	require.Contains(t, s.send(get("/lab", fromBrowser)).page(), later, "the newest")
	kept := s.send(get(address, fromBrowser)).page()
	require.Contains(t, kept, then)
	require.NotContains(t, kept, later)
	require.Contains(t, string(first.body), then)
	program := string(s.send(get(address)).body)
	require.Contains(t, program, then)
	require.NotContains(t, program, later)
}

// charged is what one trial of a variant shows that charged so often.
func charged(variant string, n int) racelab.VariantResult {
	checked := func(figure, got string) racelab.Check {
		return racelab.Check{Expected: racelab.Expected{Figure: figure, Want: got}, Got: got, OK: true}
	}
	trial := racelab.Trial{
		Number: 1, Charges: n, Money: int64(n) * racelab.Price, Outcomes: []racelab.Outcome{{Kind: racelab.Charged, Count: n}},
		Answers: []racelab.Answer{}, Figures: []racelab.Figure{}, Marks: []racelab.ChargeMark{}, Events: []racelab.Event{},
	}
	return racelab.VariantResult{
		Variant: variant, Trials: []racelab.Trial{trial}, Spread: []racelab.Spread{},
		Checks: []racelab.Check{
			checked(racelab.FigureCharges, strconv.Itoa(n)), checked(racelab.FigureMoney, racelab.Dollars(trial.Money)), checked(racelab.FigureOutcomes, trial.Outcome()),
		},
	}
}
