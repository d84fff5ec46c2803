package web

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/idempotency/racelab"
	"payonce/web/view"
)

func (s *Server) labIndexPage(c echo.Context, sweep *labRun) error {
	m := view.Lab{Frame: s.frame(view.LabSection), Limits: labLimits}
	for _, title := range racelab.Chapters() {
		chapter := view.LabChapter{Title: string(title)}
		for _, e := range racelab.All() {
			if e.Chapter == title {
				chapter.Experiments = append(chapter.Experiments, labEntry(e))
			}
		}
		m.Chapters = append(m.Chapters, chapter)
	}
	claims := claimsBy(racelab.Claims(), s.lab.runsOf(sweep))
	for _, letter := range []racelab.Article{racelab.ArticleA, racelab.ArticleB} {
		m.Articles = append(m.Articles, labArticle(letter, claims))
	}
	if sweep != nil {
		m.Sweep = sweepView(sweep)
	}
	return s.sendPage(c, 200, view.LabPage(m))
}

// labLimits explain the lab's codes, where their type leads.
var labLimits = []view.LabLimit{
	{Code: labUnderWay, Text: "One run at a time for each visitor: the figures of two would be each other's noise. 409, with Retry-After."},
	{Code: labBusy, Text: fmt.Sprintf("At most %d runs at once, with %d connections together, so that the shop keeps its own; or the database has none left, or is too slow. 503, with Retry-After.", maxLabRuns, maxLabConns)},
	{Code: labNotPermitted, Text: "The database's role may not create schemas. 503."},
	{Code: labGone, Text: fmt.Sprintf("The newest %d runs are kept, in memory, while the server lives. 404.", keptRuns)},
	{Code: labUnknown, Text: "No experiment has that name. 404."},
}

func labEntry(e *racelab.Experiment) view.LabEntry {
	says, rest := firstSentence(e.About)
	if len(says) < 60 { // a sentence that only begins
		second, _ := firstSentence(rest)
		says += " " + second
	}
	entry := view.LabEntry{Name: e.Name, Title: e.Title, Says: says}
	for i := range e.Variants {
		v := &e.Variants[i]
		entry.Expected = append(entry.Expected, view.LabExpected{
			Variant: v.Title, Figures: expectedWords(v, e.Workers.Default), Verdict: sortVerdicts[v.Sort],
		})
	}
	return entry
}

var sortVerdicts = map[racelab.Sort]view.Verdict{racelab.Broken: view.Wrong, racelab.Right: view.Right}

// sentenceEnd is a full stop and what follows it; an ellipsis is none.
var sentenceEnd = regexp.MustCompile(`[^.]\. `)

// firstSentence cuts a text behind its first sentence.
func firstSentence(text string) (first, rest string) {
	at := sentenceEnd.FindStringIndex(text)
	if at == nil {
		return text, ""
	}
	return text[:at[1]-1], text[at[1]:]
}

// expectedWords are the figures that a variant must show: how its workers end,
// and the money, or the figure that says it all. Where something is wrong and it
// is not the money, its own last figure says what.
func expectedWords(v *racelab.Variant, workers int) string {
	var parts []string
	own, right := "", false
	for _, x := range v.Expected(partiesOf(v, workers)) {
		switch x.Figure {
		case racelab.FigureCharges:
			right = x.Want == strconv.Itoa(shouldCharge(v, workers))
		case racelab.FigureOutcomes, racelab.FigureMoney:
			parts = append(parts, x.Want)
		case v.Headline:
			parts = append(parts, x.Figure+": "+x.Want)
		default:
			own = x.Figure + ": " + x.Want
		}
	}
	if v.Sort == racelab.Broken && right && own != "" {
		parts = append(parts, own)
	}
	return strings.Join(parts, ", ")
}

func labArticle(letter racelab.Article, claims []claimView) view.LabArticle {
	article := view.LabArticle{Letter: string(letter), Title: letter.Title()}
	counts := map[racelab.Verdict]int{}
	for _, c := range claims {
		if c.Article == letter {
			counts[c.Verdict]++
			article.Claims = append(article.Claims, labClaim(c))
		}
	}
	sum := []string{fmt.Sprintf("%d claims", len(article.Claims))}
	for _, v := range []racelab.Verdict{racelab.Holds, racelab.Differs, racelab.Fails, racelab.ByTest, racelab.Unproven} {
		if n := counts[v]; n > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", n, map[racelab.Verdict]string{
				racelab.Holds: "as the article says", racelab.Differs: "otherwise than it says", racelab.Fails: "not as expected here",
				racelab.ByTest: "shown by a test", racelab.Unproven: "not run yet",
			}[v]))
		}
	}
	article.Sum = strings.Join(sum, ", ") + "."
	return article
}

func labClaim(c claimView) view.LabClaim {
	m := view.LabClaim{
		Number: fmt.Sprintf("%s%d", c.Article, c.Order), Text: c.Text, Measured: c.Measured, Test: c.Test, Differs: c.Differs,
		Verdict: map[racelab.Verdict]view.LabVerdict{
			racelab.Holds: view.ClaimHolds, racelab.Differs: view.ClaimDiffers, racelab.Fails: view.ClaimFails,
			racelab.ByTest: view.ClaimTested, racelab.Unproven: view.ClaimNotRun,
		}[c.Verdict],
	}
	if c.Unanswered {
		m.Measured = "run with other settings, which do not answer it"
	}
	if e, err := racelab.Find(c.Experiment); err == nil {
		m.Experiment, m.URL = e.Title, labPath+"/"+e.Name
		if c.Run != "" {
			m.URL += "?run=" + url.QueryEscape(c.Run)
		}
	}
	return m
}

// runView is what a page says of a run as such.
func runView(r *labRun) *view.LabRun {
	m := &view.LabRun{State: view.LabRunning, URL: r.path(), EventsURL: labPath + "/runs/" + r.id + "/events"}
	progress, _ := r.seen()
	m.Done, m.Of, m.Now = progress.Done, progress.Of, progress.Now
	if !r.hasEnded() {
		return m
	}
	m.State = view.LabDone
	result, err := r.outcome()
	if err != nil {
		f := labFailure(err).failure()
		m.State, m.Title, m.Text = view.LabFailed, f.words.Title, f.words.Text
		return m
	}
	m.Age = view.Elapsed(time.Since(r.endedAt).Seconds())
	if result != nil {
		m.Server, m.Took = "PostgreSQL "+result.Server, wholeOrTenths(result.TookMS)
		m.Luck = result.Settings.Window != racelab.Barrier
	}
	return m
}

// sweepView is what the index says of a run over all experiments.
func sweepView(r *labRun) *view.LabRun {
	m := runView(r)
	if m.State != view.LabDone {
		return m
	}
	m.Title = "All experiments were run."
	m.Text = "Their figures stand in the two tables below."
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.missed) > 0 {
		var names []string
		for name := range r.missed {
			names = append(names, name)
		}
		slices.Sort(names)
		m.Title = "Not every experiment could be run."
		m.Text = "Without a result: " + strings.Join(names, ", ") + ". The log says why. The others stand in the two tables below."
	}
	return m
}

func wholeOrTenths(ms float64) string {
	if ms >= 1000 {
		return strconv.FormatFloat(ms/1000, 'f', 1, 64) + "\u00a0s"
	}
	return strconv.FormatFloat(ms, 'f', 0, 64) + "\u00a0ms"
}

func (s *Server) labExperimentPage(c echo.Context, e *racelab.Experiment, r *labRun) error {
	m := view.LabExperiment{
		Frame: s.frame(view.LabSection), Name: e.Name, Title: e.Title, Chapter: string(e.Chapter),
		Barriers: e.Barriers, HoldsWhen: e.HoldsWhen, BreaksWhen: e.BreaksWhen,
	}
	m.Lede, m.About = firstSentence(e.About)
	all := racelab.All()
	m.Of = len(all)
	for i, other := range all {
		if other.Name != e.Name {
			continue
		}
		m.Number = i + 1
		if i > 0 {
			m.Previous = &view.Link{Label: all[i-1].Title, URL: labPath + "/" + all[i-1].Name}
		}
		if i+1 < len(all) {
			m.Next = &view.Link{Label: all[i+1].Title, URL: labPath + "/" + all[i+1].Name}
		}
	}
	settings := racelab.Settings{Workers: e.Workers.Default, Trials: e.Trials.Default, Window: racelab.Barrier}
	var result *racelab.Result
	if r != nil {
		settings, m.Run = r.settings, runView(r)
		if r.hasEnded() {
			result, _ = r.outcome()
		}
	}
	m.Controls = labControls(e, settings)
	m.Variants = labVariants(e, settings.Workers, result)
	m.Legend = legendOf(m.Variants)
	for _, claim := range claimsBy(racelab.ClaimsOf(e.Name), s.lab.latest()) {
		if r != nil && result != nil { // what this run shows, and not a newer one
			claim.Measured, claim.Verdict = claim.Claim.Measured(result)
			claim.Run = r.id
		}
		m.Claims = append(m.Claims, labClaim(claim))
	}
	return s.sendPage(c, 200, view.LabExperimentPage(m))
}

// labControls are the choices within the experiment's bounds.
func labControls(e *racelab.Experiment, chosen racelab.Settings) view.LabControls {
	c := view.LabControls{Workers: choices(e.Workers, chosen.Workers, 2, 4, 8, 16, 32), Trials: choices(e.Trials, chosen.Trials, 1, 3, 10, 20)}
	if !e.HasWindow {
		return c
	}
	for _, w := range []struct {
		window racelab.Window
		label  string
	}{
		{racelab.Barrier, "held until all have looked"}, {racelab.None, "nothing: luck"}, {racelab.Handler, "the handler’s own time"},
	} {
		c.Windows = append(c.Windows, view.LabChoice{Value: string(w.window), Label: w.label, Chosen: w.window == chosen.Window})
	}
	for _, d := range racelab.HandlerTimes {
		c.Handlers = append(c.Handlers, view.LabChoice{Value: strconv.FormatInt(d.Milliseconds(), 10), Label: durationWords(d), Chosen: d == chosen.Handler})
	}
	return c
}

// choices are the usual numbers within the bounds, the default, and what is
// chosen.
func choices(b racelab.Bounds, chosen int, usual ...int) []view.LabChoice {
	usual = append(usual, b.Default, chosen)
	slices.Sort(usual)
	var list []view.LabChoice
	for _, n := range slices.Compact(usual) {
		if n >= b.Min && n <= b.Max {
			list = append(list, view.LabChoice{Value: strconv.Itoa(n), Label: strconv.Itoa(n), Chosen: n == chosen})
		}
	}
	return list
}
