package web

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"payonce/idempotency/racelab"
	"payonce/web/view"
)

// labVariants are the variants of an experiment, with what a run showed of
// each. All drawings have one scale.
func labVariants(e *racelab.Experiment, workers int, result *racelab.Result) []view.LabVariant {
	last := 0.0
	if result != nil {
		for _, v := range result.Variants {
			for _, t := range v.Trials[:min(1, len(v.Trials))] {
				last = max(last, t.EndMS)
			}
		}
	}
	scale := view.NewScale(last, "ms")
	var list []view.LabVariant
	for i := range e.Variants {
		v := &e.Variants[i]
		m := view.LabVariant{Name: v.Name, Title: v.Title, About: v.About, Expected: expectedWords(v, workers), Code: codeOf(v)}
		for _, line := range v.SQL {
			m.SQL = append(m.SQL, view.LabLine{Text: line.Text, Fault: line.Mark == racelab.Fault, Cure: line.Mark == racelab.Cure, Comment: line.Comment})
		}
		if result != nil {
			if shown := result.Variant(v.Name); shown != nil && len(shown.Trials) > 0 {
				addResult(&m, v, workers, shown, scale)
			}
		}
		list = append(list, m)
	}
	return list
}

// addResult adds what the trials of a variant showed.
func addResult(m *view.LabVariant, v *racelab.Variant, workers int, shown *racelab.VariantResult, scale view.Scale) {
	first := &shown.Trials[0]
	should := shouldCharge(v, workers)
	m.Figure = headline(v, shown, should)
	for i := range shown.Trials {
		t := &shown.Trials[i]
		row := view.LabTrial{Number: strconv.Itoa(t.Number), Marks: trialMarks(t), Outcome: strings.ReplaceAll(t.Outcome(), " × ", "\u00a0×\u00a0")}
		if v.Headline == "" { // else no money is about it
			row.Money, row.Wrong = racelab.Dollars(t.Money), t.Charges != should
		}
		m.Trials = append(m.Trials, row)
	}
	m.Spread = spreadWords(shown)
	for _, check := range shown.Checks {
		if !check.OK {
			m.Unexpected = append(m.Unexpected, fmt.Sprintf("Not as expected: %s is %s, and should be %s.", check.Figure, check.Got, check.Want))
		}
	}
	drawing := view.Swimlane{
		Caption: fmt.Sprintf("%d workers over %s: %s", len(first.Answers), wholeOrTenths(scale.Total), v.Title),
		First:   "Worker", Last: "Outcome", Scale: scale, Named: len(v.Lanes) > 0,
	}
	for n := range first.Answers {
		drawing.Lanes = append(drawing.Lanes, laneOf(v, first, n+1))
	}
	m.Drawing = &drawing
	for _, f := range first.Figures {
		m.Figures = append(m.Figures, view.Fact{Label: capitalized(f.Name), Value: f.Value})
	}
	m.Costs = costFacts(shown.Cost)
	for _, e := range first.Events {
		m.Events = append(m.Events, eventRow(v, e))
	}
}

// shouldCharge is how many charges there ought to be. A negative Should is one
// for each worker.
func shouldCharge(v *racelab.Variant, workers int) int {
	if v.Should < 0 {
		return partiesOf(v, workers)
	}
	return v.Should
}

// headline is the figure that says it all: the money, or what the variant names.
func headline(v *racelab.Variant, shown *racelab.VariantResult, should int) *view.LabFigure {
	first := &shown.Trials[0]
	if v.Headline != "" {
		f := &view.LabFigure{Value: "not measured", Label: v.Headline}
		for _, figure := range first.Figures {
			if figure.Name == v.Headline {
				f.Value = figure.Value
			}
		}
		if c := shown.Check(v.Headline); c != nil && c.OK {
			f.Verdict = sortVerdicts[v.Sort]
		}
		return f
	}
	f := &view.LabFigure{Value: racelab.Dollars(first.Money), Label: chargedWords(v, first.Charges, should)}
	switch {
	case first.Charges != should:
		f.Verdict = view.Wrong
	case should == 0:
		f.Verdict = view.Nothing
	case v.Sort != racelab.Broken && shown.OK(): // a broken variant may well charge once, and be wrong otherwise
		f.Verdict = view.Right
	}
	if len(shown.Spread) > 1 {
		f.Label += ", in trial 1"
	}
	return f
}

// chargedWords say what the money was charged for. A variant that expects no
// money has other prices than the course's, so there the charges are counted.
func chargedWords(v *racelab.Variant, charges, should int) string {
	priced := slices.ContainsFunc(v.Expected(1), func(x racelab.Expected) bool { return x.Figure == racelab.FigureMoney })
	switch {
	case should == 0:
		return "charged, and nothing should be"
	case priced && should == 1:
		return "charged for one " + racelab.Dollars(racelab.Price) + " course"
	case priced:
		return fmt.Sprintf("charged for %d courses of %s", should, racelab.Dollars(racelab.Price))
	case charges == should:
		return "charged, in " + counted(charges, "charge")
	}
	return fmt.Sprintf("charged, in %s, where there should be %d", counted(charges, "charge"), should)
}

// spreadWords say how often the trials had each number of charges, where they
// differ or nothing is claimed.
func spreadWords(shown *racelab.VariantResult) string {
	if len(shown.Spread) < 2 && len(shown.Checks) > 0 {
		return ""
	}
	var parts []string
	for _, s := range shown.Spread {
		parts = append(parts, fmt.Sprintf("%s in %d of %d", counted(s.Charges, "charge"), s.Trials, len(shown.Trials)))
	}
	text := "Spread over the trials: " + strings.Join(parts, ", ") + "."
	if len(shown.Checks) == 0 {
		text += " Without the barrier this is luck, and nothing is claimed of it."
	}
	return text
}

// costFacts are the five figures of cost.
func costFacts(c racelab.Cost) []view.Fact {
	each := func(v float64) string {
		if v > 0 && v < 1 { // one COMMIT of 32 workers is not none
			return strconv.FormatFloat(v, 'f', 2, 64)
		}
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	held := strconv.Itoa(c.HeldWaiting)
	if c.HeldWaiting > 0 {
		held += fmt.Sprintf(" (%d for a lock, %d idle)", c.LockWaits, c.IdleInTransaction)
	}
	return []view.Fact{
		{Label: "Statements a request", Value: each(c.Statements)},
		{Label: "Commits a request", Value: each(c.Commits)},
		{Label: "Round trips a request", Value: each(c.RoundTrips)},
		{Label: "Connections held and waiting, at most", Value: held},
		{Label: "Time to the answer, median and longest", Value: milliseconds(c.Times.Median) + ", " + milliseconds(c.Times.Max) + "\u00a0ms"},
	}
}

// eventRow tells one event as a row of a table.
func eventRow(v *racelab.Variant, e racelab.Event) view.LabEvent {
	row := view.LabEvent{
		Lane: strconv.Itoa(e.Worker), From: milliseconds(e.Start), To: milliseconds(e.End),
		What: cmp.Or(e.SQL, e.Note, eventName(e)), SQL: e.SQL != "", Result: e.SQLSTATE,
	}
	if e.Worker >= 1 && e.Worker <= len(v.Lanes) {
		row.Lane = v.Lanes[e.Worker-1]
	}
	if e.SQL != "" && e.SQLSTATE == "" && (e.Rows > 0 || e.What == racelab.EventSelect || e.What == racelab.EventInsert) {
		row.Result = counted(int(e.Rows), "row")
	}
	if e.SQL != "" && e.Note != "" {
		row.Result = strings.TrimPrefix(row.Result+", "+e.Note, ", ")
	}
	if e.Wait != nil {
		row.Waited = waitedFor(e.Wait) + ", until " + milliseconds(e.Wait.Until)
		if e.Wait.EndedBy > 0 {
			row.Waited += fmt.Sprintf(", freed by %d", e.Wait.EndedBy)
		}
	}
	return row
}

func capitalized(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
