package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"payonce/idempotency/racelab"
)

// labWidth is how wide the lab's text is at most.
const labWidth = 100

// wrapped writes text in lines that begin with indent.
func wrapped(out io.Writer, indent, text string) {
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line) > len(indent) && len(line)+1+len(word) > labWidth {
			_, _ = fmt.Fprintln(out, line)
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	_, _ = fmt.Fprintln(out, line)
}

// printList prints the experiments in teaching order.
func printList(to io.Writer) error {
	out := bufio.NewWriter(to)
	chapter := racelab.Chapter("")
	for _, e := range racelab.All() {
		if e.Chapter != chapter {
			chapter = e.Chapter
			fmt.Fprintf(out, "%s\n", chapter)
		}
		fmt.Fprintf(out, "  %-26s %s\n", e.Name, e.Title)
	}
	fmt.Fprint(out, "\nshop lab NAME runs one, shop lab --all runs them all and judges what the articles say.\n")
	return out.Flush()
}

// printRun prints one experiment in the manner of the articles.
func printRun(to io.Writer, result *racelab.Result) error {
	e, err := racelab.Find(result.Experiment)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "%s (%s)\nPostgreSQL %s, %s\n\n", e.Title, e.Name, result.Server, conditions(e, result))
	wrapped(out, "", e.About)
	fmt.Fprintln(out)
	wrapped(out, "", e.Barriers)
	for i := range result.Variants {
		v := &result.Variants[i]
		about := e.Variant(v.Variant)
		fmt.Fprintf(out, "\n--- %s: %s (%s) ---\n", about.Name, about.Title, about.Sort)
		wrapped(out, "    ", about.About)
		printSQL(out, about)
		printTrials(out, v)
		printFigures(out, about, v)
		printCost(out, v)
		printChecks(out, v)
	}
	fmt.Fprintln(out)
	wrapped(out, "", "Holds when: "+e.HoldsWhen)
	wrapped(out, "", "Breaks when: "+e.BreaksWhen)
	for _, c := range racelab.ClaimsOf(e.Name) {
		if c.Differs != "" {
			wrapped(out, "", fmt.Sprintf("Differs from article %s: %s", c.Article, c.Differs))
		}
	}
	return out.Flush()
}

// conditions says under what the figures were measured.
func conditions(e *racelab.Experiment, r *racelab.Result) string {
	var parts []string
	if e.Workers.Min != e.Workers.Max {
		parts = append(parts, fmt.Sprintf("%d workers", r.Settings.Workers))
	}
	trials := fmt.Sprintf("%d trials", r.Settings.Trials)
	if r.Settings.Trials == 1 {
		trials = "1 trial"
	}
	parts = append(parts, trials)
	switch r.Settings.Window {
	case racelab.None:
		parts = append(parts, "without the barrier")
	case racelab.Handler:
		parts = append(parts, fmt.Sprintf("a handler of %s in place of the barrier", r.Settings.Handler))
	default:
		if e.HasWindow {
			parts = append(parts, "with the barrier")
		}
	}
	return strings.Join(parts, ", ")
}

func printSQL(out io.Writer, v *racelab.Variant) {
	marks := map[racelab.Mark]string{racelab.Fault: "!", racelab.Cure: ">"}
	for _, line := range v.SQL {
		mark := marks[line.Mark]
		if line.Comment {
			fmt.Fprintf(out, "  %1s -- %s\n", mark, line.Text)
			continue
		}
		fmt.Fprintf(out, "  %1s %s\n", mark, line.Text)
	}
}

func printTrials(out io.Writer, v *racelab.VariantResult) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range v.Trials {
		fmt.Fprintf(table, "    trial %d:\tcharges=%d (%s)\toutcomes: %s\n", t.Number, t.Charges, racelab.Dollars(t.Money), t.Outcome())
	}
	_ = table.Flush()
}

// printFigures prints what the variant measures beside charges and outcomes,
// of the first trial; a check says if another trial differs.
func printFigures(out io.Writer, about *racelab.Variant, v *racelab.VariantResult) {
	if len(v.Trials) == 0 {
		return
	}
	for _, f := range v.Trials[0].Figures {
		fmt.Fprintf(out, "    %s: %s\n", f.Name, f.Value)
	}
	for _, a := range v.Trials[0].Answers {
		if len(about.Lanes) >= a.Worker {
			fmt.Fprintf(out, "    %s -> %s\n", about.Lanes[a.Worker-1], strings.TrimSpace(a.Told()))
		}
	}
}

func printCost(out io.Writer, v *racelab.VariantResult) {
	c := v.Cost
	wrapped(out, "    ", fmt.Sprintf(
		"per request: %.1f statements in %.1f round trips, %.1f commits; held and idle at once, at most: %d connections (%d waiting for a lock, %d idle in a transaction); answers after %.1f / %.1f / %.1f ms (min, median, max)",
		c.Statements, c.RoundTrips, c.Commits, c.HeldWaiting, c.LockWaits, c.IdleInTransaction, c.Times.Min, c.Times.Median, c.Times.Max))
}

func printChecks(out io.Writer, v *racelab.VariantResult) {
	if len(v.Checks) == 0 {
		var parts []string
		for _, s := range v.Spread {
			parts = append(parts, fmt.Sprintf("%d charges in %d of %d", s.Charges, s.Trials, len(v.Trials)))
		}
		wrapped(out, "    ", "spread: "+strings.Join(parts, ", ")+". Nothing is claimed: without the barrier this is luck.")
		return
	}
	if v.OK() {
		fmt.Fprintln(out, "    as expected")
		return
	}
	for _, c := range v.Checks {
		if !c.OK {
			wrapped(out, "    ", fmt.Sprintf("NOT AS EXPECTED: %s: %s, not %s", c.Figure, c.Got, c.Want))
		}
	}
}

// printShort prints a run in a few lines, one for each variant.
func printShort(to io.Writer, e *racelab.Experiment, result *racelab.Result) error {
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "%s (%s), %s, %s\n", e.Title, e.Name, conditions(e, result), (time.Duration(result.TookMS) * time.Millisecond).Round(10*time.Millisecond))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range result.Variants {
		v := &result.Variants[i]
		t := v.Trials[0]
		verdict := "as expected"
		switch {
		case len(v.Checks) == 0:
			verdict = "luck: nothing claimed"
		case !v.OK():
			verdict = "NOT AS EXPECTED"
		}
		about := e.Variant(v.Variant)
		says := fmt.Sprintf("charges=%d (%s)", t.Charges, racelab.Dollars(t.Money))
		for _, f := range t.Figures {
			if f.Name == about.Headline {
				says = f.Name + ": " + f.Value
			}
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", about.Name, about.Sort, says, t.Outcome(), verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range result.Variants {
		for _, c := range result.Variants[i].Checks {
			if !c.OK {
				fmt.Fprintf(out, "  %s: %s: %s, not %s\n", result.Variants[i].Variant, c.Figure, c.Got, c.Want)
			}
		}
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// printMissed prints why an experiment has no result.
func printMissed(to io.Writer, e *racelab.Experiment, why error) error {
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "%s (%s)\n", e.Title, e.Name)
	wrapped(out, "  ", "NOT RUN: "+why.Error())
	fmt.Fprintln(out)
	return out.Flush()
}

// printReport prints what the articles say, claim by claim, with the verdicts.
func printReport(to io.Writer, all report) error {
	out := bufio.NewWriter(to)
	article := racelab.Article("")
	counts := map[racelab.Verdict]int{}
	for _, c := range all.Claims {
		if c.Article != article {
			if article != "" {
				fmt.Fprintln(out)
			}
			article = c.Article
			fmt.Fprintf(out, "=== Article %s: %s ===\n", article, article.Title())
		}
		counts[c.Verdict]++
		fmt.Fprintf(out, "\n%s%d. %s", article, c.Order, strings.ToUpper(string(c.Verdict)))
		if c.Experiment != "" {
			fmt.Fprintf(out, " (%s)", c.Experiment)
		}
		fmt.Fprintln(out)
		wrapped(out, "    ", c.Text)
		if c.Measured != "" {
			what := "measured: "
			if c.Verdict == racelab.ByTest {
				what = "test: "
			}
			wrapped(out, "    ", what+c.Measured)
		}
		if c.Differs != "" {
			wrapped(out, "    ", "differs: "+c.Differs)
		}
	}
	figures, wrong := 0, 0
	for _, r := range all.Results {
		for _, v := range r.Variants {
			for _, c := range v.Checks {
				if figures++; !c.OK {
					wrong++
				}
			}
		}
	}
	fmt.Fprintf(out, "\nPostgreSQL %s: %d experiments, %d figures, %d not as expected. Claims: %d hold, %d differ, %d fail, %d by a test, %d not run.\n",
		all.Server, len(all.Results), figures, wrong,
		counts[racelab.Holds], counts[racelab.Differs], counts[racelab.Fails], counts[racelab.ByTest], counts[racelab.Unproven])
	if len(all.Missed) > 0 {
		var names []string
		for _, m := range all.Missed {
			names = append(names, m.Experiment)
		}
		wrapped(out, "", "Without a result: "+strings.Join(names, ", ")+".")
	} else if counts[racelab.Unproven] > 0 {
		wrapped(out, "", "The articles speak of the default number of workers, held by the barrier. With others a claim is not judged.")
	}
	return out.Flush()
}
