package view

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// clock is the unit in which a drawing tells the time.
type clock struct {
	unit   string
	length float64 // in milliseconds
}

var clocks = []clock{{"h", 3_600_000}, {"min", 60_000}, {"s", 1000}, {"ms", 1}}

// clock is one that leaves at least two figures.
func (m WhatHappened) clock() clock {
	horizon := m.horizon()
	for _, c := range clocks {
		if horizon >= 2*c.length {
			return c
		}
	}
	return clocks[len(clocks)-1]
}

// of gives a time in this unit.
func (c clock) of(ms float64) float64 { return ms / c.length }

// spell writes a time with three figures at most: "3.2 ms", "12 s".
func (c clock) spell(ms float64) string { return figures(c.of(ms)) + " " + c.unit }

// length says how long something took, in the unit that fits it: "0.31 ms", "185 ms", "1.2 s", "12 min".
func length(ms float64) string {
	for _, c := range clocks {
		if math.Abs(ms) >= c.length {
			return c.spell(ms)
		}
	}
	return figures(ms) + " ms"
}

// figures writes a number with three figures where it has so many.
func figures(v float64) string {
	switch size := math.Abs(v); {
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 0.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// The widths of a drawn lane at a desk and on the narrowest phone, and of a letter of its labels, in pixels.
const (
	deskLane   = 900.0
	phoneLane  = 150.0
	letter     = 6.2
	labelSpace = 6.0
)

// place leaves out the labels that would run into another one, and marks those wide that would do so on a phone. What
// says more comes first: the charge, then how a claim began and ended, then the rest.
func place(labels []LaneLabel, scale Scale) []LaneLabel {
	for i, l := range labels {
		if l.Anchor == "middle" {
			labels[i].Anchor = anchor(scale.clamp(l.At) / scale.Total)
		}
	}
	order := make([]int, len(labels))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return weight(labels[a].Text) - weight(labels[b].Text) })
	var kept []int
	wide := map[int]bool{}
	for _, i := range order {
		if collides(labels, i, kept, scale, deskLane, nil) {
			continue
		}
		wide[i] = collides(labels, i, kept, scale, phoneLane, wide)
		kept = append(kept, i)
	}
	var placed []LaneLabel
	for i, label := range labels {
		if slices.Contains(kept, i) {
			label.Wide = wide[i]
			placed = append(placed, label)
		}
	}
	return placed
}

// anchor keeps a label inside its lane.
func anchor(x float64) string {
	switch {
	case x < .08:
		return "start"
	case x > .92:
		return "end"
	}
	return "middle"
}

func weight(label string) int {
	return slices.Index([]string{"", "intent created", "record", "lease lapses", "last sign", "charged"}, label) * -1
}

// collides is true if the label i runs into one of the others, at a width. Those in hidden are not there.
func collides(labels []LaneLabel, i int, others []int, scale Scale, width float64, hidden map[int]bool) bool {
	from, to := extent(labels[i], scale, width)
	for _, other := range others {
		if hidden[other] {
			continue
		}
		if f, t := extent(labels[other], scale, width); from < t+labelSpace && f < to+labelSpace {
			return true
		}
	}
	return false
}

// extent is where a label begins and ends, in pixels.
func extent(l LaneLabel, scale Scale, width float64) (from, to float64) {
	x := width * scale.clamp(l.At) / scale.Total
	long := letter * float64(utf8.RuneCountInString(l.Text))
	switch l.Anchor {
	case "start":
		return x, x + long
	case "end":
		return x - long, x
	}
	return x - long/2, x + long/2
}
