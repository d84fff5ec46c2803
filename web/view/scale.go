package view

import (
	"math"
	"strconv"
)

// Scale maps time to the width of a drawing: x is always a percentage, so a drawing fits any screen without being
// scaled, and two drawings of one scale can be compared by eye.
type Scale struct {
	Total float64 // the time at the right edge, in Unit
	Step  float64 // between two ticks
	Unit  string  // "ms" or "s"
}

// maxTicks is how many labels fit under a drawing on a phone.
const maxTicks = 5

// NewScale returns the smallest scale that shows last: its total is a multiple of a step of 1, 2 or 5 times a power of
// ten, with at most five ticks, 0 included. Anything that is not a positive time gives a scale of one unit.
func NewScale(last float64, unit string) Scale {
	if !(last > 0) || math.IsInf(last, 0) {
		return Scale{Total: 1, Step: 1, Unit: unit}
	}
	power := math.Pow(10, math.Floor(math.Log10(last/(maxTicks-1))))
	for _, factor := range []float64{1, 2, 5, 10, 20} {
		step := factor * power
		steps := math.Ceil(last/step - 1e-9) // a time on a tick, but for rounding, needs no step more
		if steps <= maxTicks-1 {
			return Scale{Total: steps * step, Step: step, Unit: unit}
		}
	}
	panic("view: bug: no step of the scale fits")
}

// X is where a time stands: "42.50%". A time outside the scale stands at its edge.
func (s Scale) X(t float64) string {
	return percent(100 * s.clamp(t) / s.Total)
}

// Width is how wide the time between two moments is. It is never negative.
func (s Scale) Width(from, to float64) string {
	return percent(100 * max(s.clamp(to)-s.clamp(from), 0) / s.Total)
}

// Ticks are the times that carry a label, from 0 to Total.
func (s Scale) Ticks() []float64 {
	var ticks []float64
	for i := 0; i <= int(math.Round(s.Total/s.Step)); i++ {
		ticks = append(ticks, float64(i)*s.Step)
	}
	return ticks
}

func (s Scale) clamp(t float64) float64 { return min(max(t, 0), s.Total) }

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + "%" }

// number writes a time or a length with no more digits than it needs.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}
