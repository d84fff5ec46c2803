package racelab

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

var commandTag pgconn.CommandTag

// repository is this repository's root.
const repository = "../.."

func TestEveryClaimIsAnswered(t *testing.T) {
	t.Parallel()
	last := map[Article]int{}
	for _, c := range Claims() {
		last[c.Article]++
		require.Equal(t, last[c.Article], c.Order)
		require.NotEmpty(t, c.Text)
		require.NotEqual(t, c.Experiment == "", c.Test == "", "%s%d: an experiment or a test", c.Article, c.Order)
		require.False(t, c.Contrary && c.Differs == "", "%s%d: it does not say how", c.Article, c.Order)
		if c.Test != "" {
			requireTest(t, c.Test)
			continue
		}
		e, err := Find(c.Experiment)
		require.NoError(t, err, "%s%d", c.Article, c.Order)
		checked := 0
		for _, f := range c.Figures {
			v := e.Variant(f.Variant)
			require.NotNil(t, v, "%s%d: %s has no variant %s", c.Article, c.Order, e.Name, f.Variant)
			for _, expected := range v.Expected(8) {
				if expected.Figure == f.Figure {
					checked++
				}
			}
		}
		require.Positive(t, checked, "%s%d: no figure decides it", c.Article, c.Order)
	}
	require.Greater(t, last[ArticleA], 30)
	require.Greater(t, last[ArticleB], 30)
}

// requireTest: a test of that name is in that folder.
func requireTest(t *testing.T, name string) {
	t.Helper()
	folder, test, _ := strings.Cut(name, " ")
	test, sub, _ := strings.Cut(test, "/")
	files, err := filepath.Glob(filepath.Join(repository, folder, "*_test.go"))
	require.NoError(t, err)
	var text strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		text.Write(data)
	}
	require.True(t, strings.Contains(text.String(), "func "+test+"("), "%s: no such test", name)
	require.True(t, sub == "" || strings.Contains(text.String(), `"`+sub+`"`), "%s: no such part of the test", name)
}

func TestEveryExperimentIsWhole(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	names := map[string]bool{}
	chapter := 0
	for _, e := range All() {
		require.Regexp(t, name, e.Name)
		require.False(t, names[e.Name], e.Name)
		names[e.Name] = true
		for Chapters()[chapter] != e.Chapter {
			chapter++ // in teaching order, or the index runs out
		}
		for _, text := range []string{e.Title, e.About, e.Barriers, e.HoldsWhen, e.BreaksWhen} {
			require.NotEmpty(t, text, e.Name)
		}
		require.Equal(t, 1, strings.Count(e.HoldsWhen, "."), "%s: one sentence", e.Name)
		require.Equal(t, 1, strings.Count(e.BreaksWhen, "."), "%s: one sentence", e.Name)
		require.LessOrEqual(t, e.Workers.Min, e.Workers.Default)
		require.LessOrEqual(t, e.Workers.Default, e.Workers.Max)
		require.LessOrEqual(t, e.Workers.Max, MaxWorkers)
		if e.Chapter != WhatElse && e.Name != "advisory-lock" && e.Name != "on-conflict-do-update" { // which the articles leave out
			require.NotEmpty(t, ClaimsOf(e.Name), "%s answers no claim", e.Name)
		}
		variants, sorts := map[string]bool{}, map[Sort]int{}
		for _, v := range e.Variants {
			require.Regexp(t, name, v.Name)
			require.False(t, variants[v.Name], v.Name)
			variants[v.Name] = true
			sorts[v.Sort]++
			require.NotEmpty(t, v.About, v.Name)
			require.NotEmpty(t, v.Expected(8), v.Name)
			marked := 0
			for _, line := range v.SQL {
				if line.Mark != "" {
					marked++
				}
			}
			// In row-present nothing is decided: the row was there before.
			require.True(t, marked > 0 || v.Name == "row-present", "%s: no line decides", v.Name)
			require.False(t, e.HasWindow && len(v.Lanes) > 0, "%s: a script has no window", v.Name)
		}
		require.Positive(t, sorts[Right], "%s: nothing right beside what is broken", e.Name)
		require.True(t, sorts[Broken] > 0 || e.Name == "claim", "%s: nothing broken beside what is right", e.Name)
		require.Same(t, e.Variant(e.Variants[0].Name), &e.Variants[0])
	}
}

// TestRightVariantsUseThePackage: a right variant runs the real thing, and names
// it and the shop's own place as they are called.
func TestRightVariantsUseThePackage(t *testing.T) {
	t.Parallel()
	for _, e := range All() {
		for _, v := range e.Variants {
			if v.Sort != Right {
				continue
			}
			if v.Name == "as-a-queue" { // the reaper's way, and not its rows
				require.Nil(t, v.Uses)
				require.Equal(t, usesReap, v.Shop)
			} else {
				require.NotNil(t, v.Uses, "%s, %s", e.Name, v.Name)
				require.True(t, v.ledger, "%s, %s", e.Name, v.Name)
			}
			for _, code := range []*Code{v.Uses, v.Shop} {
				if code != nil {
					requireThere(t, *code)
				}
			}
		}
	}
}

// requireThere requires that a place of this repository has what it names.
func requireThere(t *testing.T, code Code) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, code.File))
	require.NoError(t, err)
	receiver, method, isMethod := strings.Cut(code.Symbol, ".")
	pattern := `(?m)^(func|type) ` + receiver + `\b`
	if isMethod {
		pattern = `(?m)^func \(\w+ \*?` + receiver + `\) ` + method + `\(`
	}
	require.Regexp(t, pattern, string(data), code.Symbol)
}

func TestClaimsAreJudgedByTheirFigures(t *testing.T) {
	t.Parallel()
	claim := Claim{Experiment: "check-then-insert", Figures: of("ask-first", FigureCharges, FigureOutcomes)}
	e := checkThenInsert()
	run := func(s Settings, charges int) *Result {
		trial := Trial{Charges: charges, Outcomes: []Outcome{{Kind: Charged, Count: charges}}}
		sum := summary(e.Variant("ask-first"), s, []Trial{trial, trial})
		return &Result{Settings: s, Variants: []VariantResult{sum}}
	}
	result := func(window Window, charges int) *Result { return run(Settings{Workers: 8, Window: window}, charges) }
	text, verdict := claim.Measured(result(Barrier, 8))
	require.Equal(t, "8 charges; 8 charged", text)
	require.Equal(t, Holds, verdict)

	text, verdict = claim.Measured(result(Barrier, 7))
	require.Equal(t, "7 charges; 7 charged", text)
	require.Equal(t, Fails, verdict)

	_, verdict = claim.Measured(result(None, 8))
	require.Equal(t, Unproven, verdict)
	text, verdict = claim.Measured(run(Settings{Workers: 2, Window: Barrier}, 2))
	require.Equal(t, Unproven, verdict, "the article speaks of eight workers, and not of two")
	require.Empty(t, text)

	contrary := claim
	contrary.Contrary = true
	_, verdict = contrary.Measured(result(Barrier, 8))
	require.Equal(t, Differs, verdict, "as expected, which is not what the article says")
	_, verdict = contrary.Measured(result(Barrier, 7))
	require.Equal(t, Fails, verdict)
	_, verdict = claim.Measured(nil)
	require.Equal(t, Unproven, verdict)

	text, verdict = Claim{Test: "web TestX"}.Measured(nil)
	require.Equal(t, "web TestX", text)
	require.Equal(t, ByTest, verdict)
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for cents, want := range map[int64]string{
		0: "$0.00", 5: "$0.05", 4900: "$49.00", 39200: "$392.00", 900000: "$9,000.00", 123456789: "$1,234,567.89", -4900: "-$49.00",
	} {
		require.Equal(t, want, Dollars(cents))
	}
}
