package view

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestScaleIsRoundAndHasAtMostFiveTicks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		last, total float64
		ticks       []float64
	}{
		{197.7, 200, []float64{0, 50, 100, 150, 200}},
		{200, 200, []float64{0, 50, 100, 150, 200}},
		{200.1, 300, []float64{0, 100, 200, 300}},
		{68, 80, []float64{0, 20, 40, 60, 80}},
		{7.9, 8, []float64{0, 2, 4, 6, 8}},
		{0.3, 0.3, []float64{0, 0.1, 0.2, 0.3}},
		{5000, 6000, []float64{0, 2000, 4000, 6000}},
		{1, 1, []float64{0, 0.5, 1}},
	} {
		scale := NewScale(row.last, "ms")
		require.InDelta(t, row.total, scale.Total, 1e-9, "last %v", row.last)
		require.InDeltaSlice(t, row.ticks, scale.Ticks(), 1e-9, "last %v", row.last)
	}
	for _, none := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.Equal(t, Scale{Total: 1, Step: 1, Unit: "s"}, NewScale(none, "s"))
	}
}

func TestScaleShowsEveryTimeItWasMadeFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.Float64Range(1e-6, 1e9).Draw(t, "last")
		scale := NewScale(last, "ms")
		if scale.Total < last*(1-1e-9) {
			t.Fatalf("%v does not fit into %v", last, scale.Total)
		}
		if scale.Total > 2.5*last {
			t.Fatalf("%v takes less than 40%% of %v", last, scale.Total)
		}
		if n := len(scale.Ticks()); n < 2 || n > 5 {
			t.Fatalf("%d ticks", n)
		}
	})
}

func TestXIsAPercentageOfTimeWithTwoDecimals(t *testing.T) {
	t.Parallel()
	scale := Scale{Total: 200, Step: 50, Unit: "ms"}
	require.Equal(t, "0.00%", scale.X(0))
	require.Equal(t, "94.20%", scale.X(188.4))
	require.Equal(t, "100.00%", scale.X(200))
	require.Equal(t, "0.00%", scale.X(-5), "what came before stands at the edge")
	require.Equal(t, "100.00%", scale.X(900))
	require.Equal(t, "1.70%", scale.Width(188.4, 191.8))
	require.Equal(t, "0.00%", scale.Width(5, 5))
	require.Equal(t, "0.00%", scale.Width(9, 5), "never negative, which would be no picture at all")
	require.Equal(t, "5.00%", scale.Width(190, 900))
}
