package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"payonce/idempotency/racelab"
	"payonce/web/view"
)

// laneOf draws what one worker did in a trial.
func laneOf(v *racelab.Variant, t *racelab.Trial, worker int) view.Lane {
	lane := view.Lane{Name: strconv.Itoa(worker)}
	if worker <= len(v.Lanes) {
		lane.Name = v.Lanes[worker-1]
	}
	answer := t.Answers[worker-1]
	add := func(kind view.ShapeKind, from, to float64) {
		lane.Shapes = append(lane.Shapes, view.Shape{Kind: kind, From: from, To: to})
	}
	var spoken []string
	failed := false
	last := -1.0 // the end of what was drawn
	for _, e := range t.Events {
		if e.Worker != worker {
			continue
		}
		if last >= 0 && e.Start > last {
			add(view.Thread, last, e.Start)
		}
		last = max(last, e.End)
		drawEvent(e, add)
		failed = failed || e.SQLSTATE != "" || e.What == racelab.EventKilled || e.What == racelab.EventHungUp
		if words := eventWords(e); words != "" {
			spoken = append(spoken, words)
		}
		if text := momentLabel(e); text != "" && len(v.Lanes) > 0 {
			lane.Labels = append(lane.Labels, view.LaneLabel{At: e.Start, Text: text, Anchor: "middle"})
		}
	}
	own := 0
	for _, m := range t.Marks {
		if m.Worker != worker {
			continue
		}
		own++
		add(chargeKind(m.TooMany), m.At, m.At)
		lane.Wrong = lane.Wrong || m.TooMany
		lane.Outcome = "charge " + strconv.Itoa(m.Number)
		lane.Winner = len(t.Marks) == 1
		spoken = append(spoken, fmt.Sprintf("charge %d at %s ms", m.Number, milliseconds(m.At)))
	}
	if kind, drawn := answerKinds[answer.Kind]; drawn && !(kind == view.Fail && failed) {
		add(kind, answer.TookMS, answer.TookMS)
	}
	switch {
	case answer.Kind != racelab.Charged:
		lane.Outcome, lane.Wrong = answerWord(answer), wrongKinds[answer.Kind]
		spoken = append(spoken, "answered: "+lane.Outcome)
		if answer.Kind == racelab.Unknown {
			lane.Outcome = "unknown" // with its status it would leave the column
		}
	case own == 0: // the provider knew the key, and gave the charge that it had
		add(view.Replayed, answer.TookMS, answer.TookMS)
		lane.Outcome = "same charge"
		spoken = append(spoken, "answered: the same charge")
	}
	lane.Spoken = strings.Join(spoken, "; ")
	if lane.Spoken == "" {
		lane.Spoken = "answered: " + answerWord(answer)
	}
	return lane
}

// momentLabels name the moments that a mark alone does not explain, where the
// event itself does not say more.
var momentLabels = map[racelab.What]string{
	racelab.EventKilled: "killed", racelab.EventHungUp: "cut off", racelab.EventLapse: "moved in time", racelab.EventSwept: "key swept",
}

// momentLabel is what happened at such a moment, or nothing for other events.
// One kind stands for several things, a lease that lapses and a day that
// passes, so it is the event's own note that says which: up to the colon, since
// how the lab arranged it stands in the table.
func momentLabel(e racelab.Event) string {
	text, named := momentLabels[e.What]
	if !named {
		return ""
	}
	if note, _, _ := strings.Cut(e.Note, ":"); note != "" && e.What != racelab.EventKilled {
		text = strings.TrimPrefix(note, "the ")
	}
	return text
}

// answerKinds are the marks of what a worker was told. A charge has its own, at
// the moment at which it became real.
var answerKinds = map[racelab.Kind]view.ShapeKind{
	racelab.Done: view.Done, racelab.Replayed: view.Replayed, racelab.Ignored: view.Ignored,
	racelab.Declined: view.Told, racelab.Conflict: view.Told, racelab.Mismatch: view.Told, racelab.Overloaded: view.Told,
	racelab.Unknown: view.Doubt,
	racelab.Failed:  view.Fail, racelab.Undone: view.Fail, racelab.HungUp: view.Fail, racelab.Killed: view.Fail,
}

// wrongKinds are the answers that say that something went wrong.
var wrongKinds = map[racelab.Kind]bool{racelab.Failed: true, racelab.Killed: true, racelab.HungUp: true}

func chargeKind(tooMany bool) view.ShapeKind {
	if tooMany {
		return view.Extra
	}
	return view.Charge
}

// drawEvent draws one event. A statement that was seen to wait is hatched until
// PostgreSQL let it go on, which is the end of the transaction it waited for.
func drawEvent(e racelab.Event, add func(kind view.ShapeKind, from, to float64)) {
	from := e.Start
	if e.Wait != nil {
		from = min(max(e.Wait.Until, e.Start), e.End)
		add(view.Waiting, e.Start, from)
		add(view.Released, from, from)
	}
	worked := e.Wait == nil || e.Rows > 0
	switch e.What {
	case racelab.EventSelect, racelab.EventLock:
		if worked {
			add(view.Select, from, e.End)
		}
	case racelab.EventInsert, racelab.EventUpdate, racelab.EventDelete:
		if worked && e.SQLSTATE == "" {
			add(view.Insert, from, e.End)
		}
	case racelab.EventCall, racelab.EventHandler:
		add(view.Call, from, e.End)
	case racelab.EventBarrier:
		add(view.Held, from, e.End)
	case racelab.EventBegin, racelab.EventCommit, racelab.EventOther:
		add(view.Thread, from, e.End)
	case racelab.EventRollback:
		add(view.Thread, from, e.End)
		add(view.Point, e.End, e.End)
	case racelab.EventKilled, racelab.EventHungUp:
		add(view.Fail, e.Start, e.Start)
	case racelab.EventLapse, racelab.EventSwept:
		add(view.Lapse, e.Start, e.Start)
	}
	if e.Commits || e.What == racelab.EventCommit && e.SQLSTATE == "" {
		add(view.Commit, e.End, e.End)
	}
	if e.SQLSTATE != "" {
		add(view.Fail, e.End, e.End)
	}
}

// eventWords says what happened, for those who do not see the drawing.
func eventWords(e racelab.Event) string {
	span := milliseconds(e.Start) + " to " + milliseconds(e.End) + " ms"
	words := ""
	switch e.What {
	case racelab.EventBegin, racelab.EventAnswer:
		return ""
	case racelab.EventCall:
		words = "call " + span
	case racelab.EventHandler:
		words = "handler at work " + span
	case racelab.EventBarrier:
		words = "held by the lab " + span
	case racelab.EventCommit:
		words = "COMMIT " + milliseconds(e.End) + " ms"
	case racelab.EventRollback:
		words = "ROLLBACK " + milliseconds(e.End) + " ms"
	case racelab.EventKilled, racelab.EventHungUp, racelab.EventLapse, racelab.EventSwept:
		words = momentLabel(e) + " " + milliseconds(e.Start) + " ms"
	default:
		words = eventName(e) + " " + span
		if e.What == racelab.EventSelect && e.Rows == 0 && e.SQLSTATE == "" {
			words += " found no row"
		}
	}
	if e.Wait != nil {
		words += ", waited " + waitedFor(e.Wait) + " until " + milliseconds(e.Wait.Until) + " ms"
	}
	if e.SQLSTATE != "" {
		words += ", then " + e.SQLSTATE
	}
	return words
}

// eventName is the statement's kind, as SQL has it.
func eventName(e racelab.Event) string {
	switch e.What {
	case racelab.EventLock:
		return "advisory lock"
	case racelab.EventOther:
		first, _, _ := strings.Cut(e.SQL, " ")
		return first
	case racelab.EventHungUp, racelab.EventKilled, racelab.EventLapse, racelab.EventSwept:
		return momentLabel(e)
	case racelab.EventBarrier:
		return "held by the lab"
	case racelab.EventCall, racelab.EventHandler, racelab.EventAnswer:
		return string(e.What)
	}
	return strings.ToUpper(string(e.What))
}

// waitedFor names who stood in the way, as pg_blocking_pids had it.
func waitedFor(w *racelab.Wait) string {
	var names []string
	for _, n := range w.For {
		if n == 0 {
			names = append(names, "the lab")
		} else {
			names = append(names, strconv.Itoa(n))
		}
	}
	if len(names) == 0 {
		return "for a lock"
	}
	return "for " + strings.Join(names, ", ")
}

func milliseconds(ms float64) string { return strconv.FormatFloat(ms, 'f', 1, 64) }

// answerWord is what a worker was told, in the last column.
func answerWord(a racelab.Answer) string {
	if a.Kind == racelab.Failed && a.SQLSTATE != "" {
		return a.SQLSTATE
	}
	return a.Kind.Word()
}

// trialMarks are the outcomes of one trial, in order of worker.
func trialMarks(t *racelab.Trial) []view.ShapeKind {
	var marks []view.ShapeKind
	for _, a := range t.Answers {
		kind, drawn := answerKinds[a.Kind]
		if !drawn {
			kind = chargeOf(t, a.Worker)
		}
		marks = append(marks, kind)
	}
	return marks
}

// chargeOf is the mark of a worker that was told of a charge: a disc for each
// charge and no more, so that charges can be counted. Where it made none, it was
// given one that the provider had already.
func chargeOf(t *racelab.Trial, worker int) view.ShapeKind {
	kind := view.Replayed
	for _, m := range t.Marks {
		if m.Worker == worker && kind != view.Extra {
			kind = chargeKind(m.TooMany)
		}
	}
	return kind
}

// legendTexts say what the shapes of the lab's drawings are, in this order.
var legendTexts = []view.LegendItem{
	{Kind: view.Select, Text: "SELECT, or a lock"},
	{Kind: view.Insert, Text: "INSERT, UPDATE"},
	{Kind: view.Waiting, Text: "waiting for a lock"},
	{Kind: view.Released, Text: "end of the wait"},
	{Kind: view.Call, Text: "a call, or the handler"},
	{Kind: view.Held, Text: "held by the lab"},
	{Kind: view.Commit, Text: "COMMIT"},
	{Kind: view.Point, Text: "ROLLBACK"},
	{Kind: view.Charge, Text: "a charge"},
	{Kind: view.Extra, Text: "a charge too many"},
	{Kind: view.Replayed, Text: "replayed, or known"},
	{Kind: view.Told, Text: "refused: 4xx, 503"},
	{Kind: view.Doubt, Text: "unknown"},
	{Kind: view.Done, Text: "done, no charge"},
	{Kind: view.Ignored, Text: "ignored, with 200"},
	{Kind: view.Fail, Text: "error, killed, cut off"},
	{Kind: view.Lapse, Text: "a lapse, or a sweep"},
}

// legendOf explains the shapes that are drawn, and no others.
func legendOf(variants []view.LabVariant) []view.LegendItem {
	used := map[view.ShapeKind]bool{}
	for _, v := range variants {
		if v.Drawing == nil {
			continue
		}
		for _, lane := range v.Drawing.Lanes {
			for _, shape := range lane.Shapes {
				used[shape.Kind] = true
			}
		}
		for _, t := range v.Trials {
			for _, kind := range t.Marks {
				used[kind] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(legendTexts), func(item view.LegendItem) bool { return !used[item.Kind] })
}
