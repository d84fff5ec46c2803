package view

import (
	"net/url"
	"slices"
)

// Lab is the index of the race lab: the experiments in teaching order, and the two articles claim by claim.
type Lab struct {
	Frame    Frame
	Server   string // "PostgreSQL 17.6"; empty if nothing was run yet
	Chapters []LabChapter
	Articles []LabArticle
	// Sweep is the run over all experiments that the address names.
	Sweep *LabRun
	// Limits explain the answers that are no results.
	Limits []LabLimit
}

// LabChapter is a part of the course that the experiments make.
type LabChapter struct {
	Title       string
	Experiments []LabEntry
}

// LabEntry is one experiment in the index.
type LabEntry struct {
	Name     string
	Title    string
	Says     string // one sentence
	Expected []LabExpected
}

// LabExpected is what a variant must show, in words.
type LabExpected struct {
	Variant string
	Figures string  // "8 charged, $392.00"
	Verdict Verdict // Wrong for a broken variant, Right for the one to take
}

// LabArticle is an article, claim by claim.
type LabArticle struct {
	Letter string // "A"
	Title  string
	Sum    string // "34 of 36 hold, 2 not run yet"
	Claims []LabClaim
}

// LabClaim is one thing that an article says.
type LabClaim struct {
	Number     string // "A1"
	Text       string
	Verdict    LabVerdict
	Measured   string // the figure; empty if it was not run
	Experiment string // the title of the one that answers it; empty if a test does
	URL        string // of the run that showed it, else of the experiment
	Test       string
	Differs    string // where Go, pgx or this shop differ from the article
}

// LabVerdict is what a run says about a claim.
type LabVerdict string

// The verdicts.
const (
	ClaimHolds   LabVerdict = "holds"
	ClaimDiffers LabVerdict = "differs" // as expected here, and not as the article says
	ClaimFails   LabVerdict = "fails"
	ClaimTested  LabVerdict = "by a test"
	ClaimNotRun  LabVerdict = "not run yet"
)

// LabLimit explains one code of the lab.
type LabLimit struct {
	Code string
	Text string
}

// LabRunState is how far a run is.
type LabRunState string

// The states of a run.
const (
	LabRunning LabRunState = "running"
	LabDone    LabRunState = "done"
	LabFailed  LabRunState = "failed"
)

// LabRun is the run that an address names.
type LabRun struct {
	State     LabRunState
	URL       string
	EventsURL string
	// Done, Of and Now are how far it is: "Claim it, trial 2 of 3".
	Done, Of int
	Now      string
	// Age, Server and Took are about a run that is done.
	Age    Elapsed
	Server string // "PostgreSQL 17.6"
	Took   string // "412 ms"
	// Luck is true if nothing kept the window open, so that nothing is claimed.
	Luck bool
	// Title and Text say why there is no result.
	Title, Text string
}

// LabExperiment is the page of one experiment.
type LabExperiment struct {
	Frame      Frame
	Name       string
	Title      string
	Chapter    string
	Number, Of int
	Lede       string
	About      string
	Barriers   string
	HoldsWhen  string
	BreaksWhen string
	Controls   LabControls
	Run        *LabRun
	Variants   []LabVariant
	Legend     []LegendItem
	Claims     []LabClaim
	Previous   *Link
	Next       *Link
}

// LabControls are the settings that can be chosen. A list of less than two has nothing to choose.
type LabControls struct {
	Workers, Trials, Windows, Handlers []LabChoice
}

// LabChoice is one option of a setting.
type LabChoice struct {
	Value  string
	Label  string
	Chosen bool
}

// LabVariant is one way to answer the question.
type LabVariant struct {
	Name  string
	Title string
	About string
	SQL   []LabLine
	// Code are the places in the shop's source that do it; none if the shop does not.
	Code       []LabCode
	Expected   string // "8 charged, $392.00", before a run
	Figure     *LabFigure
	Unexpected []string // checks that failed, each in words
	Spread     string   // where the trials differ
	Trials     []LabTrial
	Drawing    *Swimlane
	Figures    []Fact // those that the variant names itself
	Costs      []Fact
	Events     []LabEvent
}

// LabCode is a function or a type of the shop, with its source.
type LabCode struct {
	Says   string // "The shop’s own code"
	Symbol string // "Ledger.Do"
	Place  string // file and line: "idempotency/do.go:19"
	Text   string
}

// LabLine is a statement of a variant, or a comment.
type LabLine struct {
	Text    string
	Fault   bool // here it goes wrong
	Cure    bool // here it is put right
	Comment bool
}

// LabFigure is the figure that says it all.
type LabFigure struct {
	Value   string
	Label   string
	Verdict Verdict
}

// LabTrial is one row of the unit chart.
type LabTrial struct {
	Number  string
	Marks   []ShapeKind
	Outcome string // "1 charged, 7 replayed"
	Money   string
	Wrong   bool
}

// LabEvent is one row of the drawing, told as a table.
type LabEvent struct {
	Lane   string
	From   string // in ms
	To     string
	What   string // the statement, or what happened
	SQL    bool
	Result string // "1 row", "23505"
	Waited string // "for 5, until 3.9 ms"
}

// sized gives the class of a figure that is too long to be set as large as money is.
func (f LabFigure) sized() string {
	switch n := len([]rune(f.Value)); {
	case n > 16:
		return "figure-long"
	case n > 8:
		return "figure-short"
	}
	return ""
}

// placed is the drawing with its labels in places where they can be read.
func (v LabVariant) placed() Swimlane {
	d := *v.Drawing
	for i := range d.Lanes {
		d.Lanes[i].Labels = place(inside(d.Lanes[i].Labels, d.Scale), d.Scale)
	}
	return d
}

// inside anchors the labels that would otherwise leave their lane on a phone: here they can be as long as half of it.
func inside(labels []LaneLabel, scale Scale) []LaneLabel {
	labels = slices.Clone(labels)
	for i, l := range labels {
		if from, to := extent(l, scale, phoneLane); from < 0 {
			labels[i].Anchor = "start"
		} else if to > phoneLane {
			labels[i].Anchor = "end"
		}
	}
	return labels
}

// hasResults is true once the run that the page shows has some.
func (m LabExperiment) hasResults() bool { return m.Run != nil && m.Run.State == LabDone }

// link leads to the article on its page.
func (a LabArticle) link() string { return "#article-" + url.PathEscape(a.Letter) }
