package view_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/web/view"
)

// experiment is the page of an experiment before it was run.
func experiment() view.LabExperiment {
	return view.LabExperiment{
		Frame: frame(view.LabSection), Name: "check-then-insert", Title: "Check, then insert", Chapter: "The question", Number: 1, Of: 27,
		Lede: "Eight workers, one key, one $49.00 course.", About: "Each looks whether the key was seen.",
		Barriers: "A second barrier after the SELECT.", HoldsWhen: "The statement that asks claims.", BreaksWhen: "Anything happens in between.",
		Controls: view.LabControls{
			Workers: []view.LabChoice{{Value: "2", Label: "2"}, {Value: "8", Label: "8", Chosen: true}},
			Trials:  []view.LabChoice{{Value: "3", Label: "3", Chosen: true}},
			Windows: []view.LabChoice{{Value: "barrier", Label: "held", Chosen: true}, {Value: "none", Label: "luck"}},
		},
		Variants: []view.LabVariant{
			{
				Name: "ask-first", Title: "Ask first", About: "Nothing stands behind it.", Expected: "8 charged, $392.00",
				SQL: []view.LabLine{{Text: "BEGIN"}, {Text: "SELECT response FROM keys WHERE key = $1", Fault: true}, {Text: "no row", Comment: true}},
			},
			{
				Name: "claim", Title: "Claim it", About: "The row count is the answer.", Expected: "1 charged, 7 replayed, $49.00",
				Code: []view.LabCode{{Says: "The shop’s own code", Symbol: "Ledger.Do", Place: "idempotency/do.go:19", Text: "// Do runs.\nfunc (l *Ledger) Do() {\n}"}},
				SQL:  []view.LabLine{{Text: "INSERT INTO idempotency_keys (scope, key, ...) VALUES ($1, $2, ...) ON CONFLICT DO NOTHING RETURNING attempt, ...", Cure: true}},
			},
		},
		Claims: claims(),
		Next:   &view.Link{Label: "SELECT ... FOR UPDATE", URL: "/lab/select-for-update"},
	}
}

func claims() []view.LabClaim {
	return []view.LabClaim{
		{Number: "A1", Text: "Eight charges.", Verdict: view.ClaimHolds, Measured: "8 charges; $392.00", Experiment: "Check, then insert", URL: "/lab/check-then-insert?run=run_ABC", Differs: "A start barrier alone is luck."},
		{Number: "A2", Text: "Seven replays.", Verdict: view.ClaimFails, Measured: "8 charges", Experiment: "Claim it", URL: "/lab/claim"},
		{Number: "A3", Text: "422.", Verdict: view.ClaimTested, Test: "web TestErrorTable"},
		{Number: "A4", Text: "Not run.", Verdict: view.ClaimNotRun, Experiment: "Claim it", URL: "/lab/claim"},
	}
}

// measured is the same after a run with so many workers.
func measured(workers int) view.LabExperiment {
	m := experiment()
	m.Run = &view.LabRun{State: view.LabDone, URL: "/lab/check-then-insert?run=run_ABC", Age: 4, Server: "PostgreSQL 17.6", Took: "412 ms"}
	scale := view.NewScale(7.9, "ms")
	for i := range m.Variants {
		v := &m.Variants[i]
		v.Figure = &view.LabFigure{Value: "$392.00", Label: "charged for one $49.00 course", Verdict: view.Wrong}
		trial := view.LabTrial{Number: "1", Outcome: strconv.Itoa(workers) + " charged", Money: "$392.00", Wrong: true}
		v.Drawing = &view.Swimlane{Caption: "Workers: " + v.Title, First: "Worker", Last: "Outcome", Scale: scale}
		for n := range workers {
			trial.Marks = append(trial.Marks, view.Extra)
			v.Drawing.Lanes = append(v.Drawing.Lanes, view.Lane{
				Name: strconv.Itoa(n + 1), Spoken: "SELECT 0.1 to 1.1 ms found no row; held by the lab 1.1 to 2.0 ms; COMMIT 4.1 ms; charge 1 at 4.1 ms", Outcome: "charge 1", Wrong: true,
				Shapes: []view.Shape{{Kind: view.Select, From: .1, To: 1.1}, {Kind: view.Held, From: 1.1, To: 2}, {Kind: view.Commit, From: 4.1}, {Kind: view.Extra, From: 4.1}},
			})
		}
		v.Trials = []view.LabTrial{trial}
		v.Figures = []view.Fact{{Label: "Workers that found no key", Value: "8"}}
		v.Costs = []view.Fact{{Label: "Statements a request", Value: "5.0"}, {Label: "Commits a request", Value: "1.0"}}
		v.Events = []view.LabEvent{{Lane: "1", From: "0.1", To: "1.1", What: "SELECT 1", SQL: true, Result: "0 rows"}, {Lane: "2", From: "0.1", To: "3.9", What: "INSERT", Result: "23505", Waited: "for 1, until 3.9"}}
	}
	m.Variants[1].Figure = &view.LabFigure{Value: "$49.00", Label: "charged for one $49.00 course", Verdict: view.Right}
	m.Variants[1].Spread = "Spread over the trials: 1 charge in 3 of 3."
	m.Variants[1].Unexpected = []string{"Not as expected: charges is 8, and should be 1."}
	m.Legend = []view.LegendItem{{Kind: view.Select, Text: "SELECT"}, {Kind: view.Held, Text: "held by the lab"}, {Kind: view.Extra, Text: "a charge too many"}}
	return m
}

func lab() view.Lab {
	return view.Lab{
		Frame: frame(view.LabSection),
		Chapters: []view.LabChapter{
			{Title: "The question", Experiments: []view.LabEntry{{
				Name: "check-then-insert", Title: "Check, then insert", Says: "Eight workers, one key.",
				Expected: []view.LabExpected{{Variant: "Ask first", Figures: "8 charged, $392.00", Verdict: view.Wrong}, {Variant: "Claim it", Figures: "1 charged, 7 replayed, $49.00", Verdict: view.Right}},
			}}},
			{Title: "The wrong answers"},
		},
		Articles: []view.LabArticle{{Letter: "A", Title: "What they do", Sum: "4 claims.", Claims: claims()}, {Letter: "B", Title: "Race conditions", Sum: "4 claims.", Claims: claims()}},
		Limits:   []view.LabLimit{{Code: "lab_busy", Text: "At most three runs at once."}},
	}
}

// labStories are the pages of the race lab, in every state.
func labStories() []story {
	running, failed, swept, sweeping := experiment(), experiment(), lab(), lab()
	running.Run = &view.LabRun{State: view.LabRunning, URL: "/lab/check-then-insert?run=run_ABC", EventsURL: "/lab/runs/run_ABC/events", Done: 2, Of: 6, Now: "Ask first, trial 2 of 3"}
	failed.Run = &view.LabRun{State: view.LabFailed, URL: "/lab/check-then-insert?run=run_ABC", Title: "The lab is busy.", Text: "Run it again in a moment."}
	sweeping.Sweep = &view.LabRun{State: view.LabRunning, URL: "/lab?run=run_ABC", EventsURL: "/lab/runs/run_ABC/events", Done: 2, Of: 27, Now: "Isolation levels"}
	swept.Sweep = &view.LabRun{State: view.LabDone, URL: "/lab?run=run_ABC", Title: "All experiments were run.", Text: "See below."}
	named := measured(2)
	for i := range named.Variants {
		v := &named.Variants[i]
		v.Figure = &view.LabFigure{Value: "1 × send the invoice, 2 × open the course", Label: "delivered", Verdict: view.Wrong}
		v.Drawing.Named = true
		v.Drawing.Lanes[0].Name, v.Drawing.Lanes[0].Labels = "first try", []view.LaneLabel{{At: 1, Text: "killed", Anchor: "middle"}, {At: 1.1, Text: "lease lapses", Anchor: "middle"}}
	}
	return []story{
		{"lab", view.LabPage(lab())},
		{"lab-measuring", view.LabPage(sweeping)},
		{"lab-measured", view.LabPage(swept)},
		{"experiment", view.LabExperimentPage(experiment())},
		{"experiment-running", view.LabExperimentPage(running)},
		{"experiment-failed", view.LabExperimentPage(failed)},
		{"experiment-measured", view.LabExperimentPage(measured(8))},
		{"experiment-measured-32", view.LabExperimentPage(measured(32))},
		{"experiment-measured-named", view.LabExperimentPage(named)},
	}
}

func TestAnExperimentComparesItsVariants(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.LabExperimentPage(measured(8))))
	variants := elements(root, withClass("variant"))
	require.Len(t, variants, 2)
	for i, want := range []struct{ figure, verdict, marked string }{
		{"$392.00 charged for one $49.00 course", "wrong", "SELECT response FROM keys WHERE key = $1;"},
		{"$49.00 charged for one $49.00 course", "right", "INSERT INTO idempotency_keys (scope, key, ...)"},
	} {
		figure := only(t, elements(variants[i], withClass("figure")))
		require.Equal(t, want.figure, text(figure))
		require.Equal(t, want.verdict, attr(figure, "data-verdict"))
		require.Equal(t, want.marked, text(elements(variants[i], named("mark"))[0]))
		require.Len(t, elements(variants[i], withClass("lane")), 8)
		require.Equal(t, "0 2 4 6 8 ms", text(only(t, elements(variants[i], withClass("axis")))), "one scale for all")
		require.Contains(t, text(only(t, elements(variants[i], withClass("told-table")))), "1 0.1 1.1 SELECT 1 0 rows")
		require.Len(t, elements(variants[i], withClass("facts")), 2)
	}
	require.Empty(t, elements(variants[0], withClass("source")))
	source := text(only(t, elements(variants[1], withClass("source"))))
	require.Equal(t, "The shop’s own code: Ledger.Do idempotency/do.go:19 // Do runs. func (l *Ledger) Do() { }", source)
	require.Contains(t, text(variants[1]), "Not as expected: charges is 8, and should be 1.")
	require.Contains(t, text(root), "Measured 4 s ago on this machine in 412 ms, PostgreSQL 17.6.")
}

func TestAUnitChartShowsEightInARow(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int][2]string{2: {"32", "16"}, 8: {"128", "16"}, 16: {"128", "32"}, 32: {"128", "64"}} {
		root := parse(t, renderPage(t, view.LabExperimentPage(measured(workers))))
		chart := elements(elements(root, withClass("trials"))[0], named("svg"))[0]
		require.Equal(t, want, [2]string{attr(chart, "width"), attr(chart, "height")})
		require.Len(t, elements(chart, named("use")), workers)
	}
}

func TestARunUnderWayCanBeFollowed(t *testing.T) {
	t.Parallel()
	for _, story := range labStories() {
		root := parse(t, renderPage(t, story.page))
		running := elements(root, func(n *html.Node) bool { return attr(n, "id") == "lab-run" })
		buttons := elements(root, func(n *html.Node) bool { return n.Data == "button" })
		if story.name != "experiment-running" && story.name != "lab-measuring" {
			require.Empty(t, running, story.name)
			require.Len(t, buttons, 1, story.name)
			continue
		}
		require.Empty(t, buttons, "one run at a time")
		box := only(t, running)
		require.Equal(t, "/lab/runs/run_ABC/events", attr(box, "data-events"))
		require.Equal(t, "2", attr(only(t, elements(box, named("progress"))), "value"))
		require.Equal(t, attr(box, "data-url"), attr(only(t, elements(box, named("a"))), "href"), "without a script, too")
	}
}

func TestLongSQLIsBrokenAtItsClausesAndKeepsItsMark(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.LabExperimentPage(experiment())))
	listing := elements(root, named("pre"))[1]
	var lines []string
	for _, mark := range elements(listing, named("mark")) {
		require.Equal(t, "cure", attr(mark, "class"))
		lines = append(lines, text(mark))
		require.LessOrEqual(t, len(text(mark)), 60)
	}
	require.Equal(t, "INSERT INTO idempotency_keys (scope, key, ...) VALUES ($1, $2, ...) ON CONFLICT DO NOTHING RETURNING attempt, ...;", strings.Join(lines, " "))
}

func TestEachClaimHasItsFigureOrSaysThatItWasNotRun(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.LabPage(lab())))
	var rows []string
	for _, row := range elements(elements(root, withClass("claims"))[0], named("tr"))[1:] {
		rows = append(rows, text(row))
	}
	require.Equal(t, []string{
		"A1 Eight charges. Here: A start barrier alone is luck. holds 8 charges; $392.00 Check, then insert",
		"A2 Seven replays. fails 8 charges Claim it",
		"A3 422. by a test web TestErrorTable",
		"A4 Not run. not run yet Claim it",
	}, rows)
}
