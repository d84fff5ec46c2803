package racelab

import (
	"regexp"
	"strconv"
	"strings"
)

// Expected is a figure that a variant must show in every trial.
type Expected struct {
	Figure string `json:"figure"`
	Want   string `json:"want"`
}

// Expected gives the figures that the variant must show with so many workers.
func (v *Variant) Expected(workers int) []Expected {
	var list []Expected
	for _, e := range v.expect {
		list = append(list, Expected{e.figure, e.want(workers)})
	}
	return list
}

// Check compares an expected figure with every trial of a run.
type Check struct {
	Expected
	// Got is what the trials showed: one text if they agree, else one for each.
	Got string `json:"got"`
	OK  bool   `json:"ok"`
}

// The figures that every trial has. Others are named by their variant.
const (
	FigureCharges  = "charges"
	FigureOutcomes = "outcomes"
	FigureMoney    = "money"
)

// expectation is a figure and what it must be. In want's text {n}, {n-1} and so
// on stand for the number of workers.
type expectation struct {
	figure string
	text   string
	// luck is true if the figure needs the barrier, though the variant's others
	// do not.
	luck bool
}

// charges expects so many charges of one course each; "{n}" is one a worker.
func charges(n string) expectation { return expectation{figure: FigureCharges, text: n} }

// outcomes expects how the workers ended, as Trial.Outcome says it.
func outcomes(text string) expectation { return expectation{figure: FigureOutcomes, text: text} }

// money expects the price of so many courses.
func money(courses string) expectation { return expectation{figure: FigureMoney, text: courses} }

// figure expects a figure that the variant names.
func figure(name, text string) expectation { return expectation{figure: name, text: text} }

// byBarrier expects a figure that only the barrier makes certain.
func byBarrier(name, text string) expectation {
	return expectation{figure: name, text: text, luck: true}
}

func (e expectation) want(workers int) string {
	text := fill(e.text, workers)
	switch e.figure {
	case FigureOutcomes:
		text = withoutNone(text)
	case FigureMoney:
		courses, _ := strconv.ParseInt(text, 10, 64)
		text = Dollars(courses * Price)
	}
	return text
}

var placeholder = regexp.MustCompile(`\{n(-\d)?\}`)

func fill(text string, workers int) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		less, _ := strconv.Atoi(strings.Trim(p, "{n}"))
		return strconv.Itoa(workers + less)
	})
}

// withoutNone leaves out the outcomes that nobody has.
func withoutNone(text string) string {
	var some []string
	for _, part := range strings.Split(text, ", ") {
		if !strings.HasPrefix(part, "0 ") {
			some = append(some, part)
		}
	}
	return strings.Join(some, ", ")
}

// got gives the figure as a trial shows it.
func (e expectation) got(t *Trial) string {
	switch e.figure {
	case FigureCharges:
		return strconv.Itoa(t.Charges)
	case FigureOutcomes:
		return t.Outcome()
	case FigureMoney:
		return Dollars(t.Money)
	}
	for _, f := range t.Figures {
		if f.Name == e.figure {
			return f.Value
		}
	}
	return "not measured"
}

// check compares with the trials what can be expected of them.
func (v *Variant) check(workers int, window Window, trials []Trial) []Check {
	list := []Check{}
	for _, e := range v.expect {
		if window != Barrier && (e.luck || !v.AlwaysHolds) {
			continue
		}
		c := Check{Expected: Expected{e.figure, e.want(workers)}, OK: len(trials) > 0}
		var seen []string
		for i := range trials {
			got := e.got(&trials[i])
			c.OK = c.OK && got == c.Want
			seen = append(seen, got)
		}
		c.Got = strings.Join(distinct(seen), "; ")
		list = append(list, c)
	}
	return list
}

func distinct(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	for _, s := range list[1:] {
		if s != list[0] {
			return list
		}
	}
	return list[:1]
}
