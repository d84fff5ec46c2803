package racelab

import (
	"cmp"
	"slices"
	"strings"
)

// Article names one of the two articles whose claims the lab answers.
type Article string

// The articles.
const (
	ArticleA Article = "A" // Idempotency Keys: What Stripe and Shopify Actually Do
	ArticleB Article = "B" // Idempotency Key Race Conditions That Still Cause Duplicate Charges
)

// Title is the article's.
func (a Article) Title() string {
	if a == ArticleA {
		return "Idempotency Keys: What Stripe and Shopify Actually Do"
	}
	return "Idempotency Key Race Conditions That Still Cause Duplicate Charges"
}

// Claim is one thing that an article says, in our words, and what answers it: an
// experiment, or a test of this repository where it is not about PostgreSQL.
type Claim struct {
	Article Article `json:"article"`
	// Order is its place in the article, from 1.
	Order int    `json:"order"`
	Text  string `json:"text"`
	// Experiment is the name of the one that answers it, or empty.
	Experiment string `json:"experiment,omitempty"`
	// Figures are those of the experiment that must be as expected for the
	// claim to hold, and some that are only told.
	Figures []FigureName `json:"figures,omitempty"`
	// Test is a test that answers it, as a folder of this repository and the
	// test's name.
	Test string `json:"test,omitempty"`
	// Differs says where Go, pgx or this shop differ from what the article has.
	Differs string `json:"differs,omitempty"`
	// Contrary is true if the figures, as expected, are not what the article
	// says. Differs says how.
	Contrary bool `json:"contrary,omitempty"`
}

// FigureName is a figure of a variant.
type FigureName struct {
	Variant string `json:"variant"`
	Figure  string `json:"figure"`
}

// Verdict is what a run says about a claim.
type Verdict string

// The verdicts.
const (
	Holds    Verdict = "holds"
	Differs  Verdict = "differs"   // as expected, and not as the article says
	Fails    Verdict = "fails"     // not as expected
	ByTest   Verdict = "by a test" // not about PostgreSQL: the test named answers it
	Unproven Verdict = "not run"
)

// Claims gives every claim, A's and then B's, each in the order of its article.
func Claims() []Claim { return slices.Concat(number(ArticleA, claimsA), number(ArticleB, claimsB)) }

func number(a Article, claims []Claim) []Claim {
	list := slices.Clone(claims)
	for i := range list {
		list[i].Article, list[i].Order = a, i+1
	}
	return list
}

// ClaimsOf gives the claims that an experiment answers.
func ClaimsOf(experiment string) []Claim {
	return slices.DeleteFunc(Claims(), func(c Claim) bool { return c.Experiment != experiment })
}

// Answers is true if a run with these settings can answer a claim: the articles
// speak of so many workers, held by a barrier, and of no others.
func (e *Experiment) Answers(s Settings) bool {
	return s.Workers == e.Workers.Default && cmp.Or(s.Window, Barrier) == Barrier
}

// Measured gives the claim's figures as the run showed them, and the verdict.
// result is a run of the claim's experiment, or nil. The verdict is Unproven, and
// there are no figures, if it is nil, had other settings than those that answer
// claims, or left a variant out.
func (c Claim) Measured(result *Result) (string, Verdict) {
	switch {
	case c.Experiment == "":
		return c.Test, ByTest
	case result == nil:
		return "", Unproven
	}
	if e, err := Find(c.Experiment); err != nil || !e.Answers(result.Settings) {
		return "", Unproven
	}
	verdict := Holds
	if c.Contrary {
		verdict = Differs
	}
	var parts []string
	last := ""
	for _, f := range c.Figures {
		v := result.Variant(f.Variant)
		if v == nil || len(v.Checks) == 0 {
			return "", Unproven // left out
		}
		text := v.seen(f.Figure) // of a figure that is only told
		if check := v.Check(f.Figure); check != nil {
			text = check.Got
			if !check.OK {
				verdict = Fails
			}
		}
		switch f.Figure {
		case FigureCharges:
			text = plural(text, "charge")
		case FigureOutcomes, FigureMoney:
		default:
			text = f.Figure + ": " + text
		}
		if f.Variant != last && len(variantsOf(c.Figures)) > 1 {
			text = f.Variant + ": " + text
		}
		last = f.Variant
		parts = append(parts, text)
	}
	return strings.Join(parts, "; "), verdict
}

func plural(count, noun string) string {
	if count == "1" {
		return "1 " + noun
	}
	return count + " " + noun + "s"
}

func variantsOf(figures []FigureName) []string {
	var names []string
	for _, f := range figures {
		if !slices.Contains(names, f.Variant) {
			names = append(names, f.Variant)
		}
	}
	return names
}

// of names figures of a variant.
func of(variant string, figures ...string) []FigureName {
	var list []FigureName
	for _, f := range figures {
		list = append(list, FigureName{variant, f})
	}
	return list
}

// and names figures of several variants.
func and(lists ...[]FigureName) []FigureName { return slices.Concat(lists...) }
