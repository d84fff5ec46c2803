package web_test

import (
	"html"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/idempotency/racelab"
)

// measured runs an experiment once and gives its page.
func (s *shop) measured(experiment string) string {
	s.t.Helper()
	got := s.runs(experiment, `{"trials":1}`)
	require.Equal(s.t, 201, got.status, string(got.body))
	return s.send(get(got.header.Get("Location"), fromBrowser)).page()
}

var (
	figurePattern = regexp.MustCompile(`<p class="figure" data-verdict="(\w*)">\s*<span class="money money-figure">([^<]*)</span>\s*<span class="quiet">([^<]*)</span>`)
	labelPattern  = regexp.MustCompile(`<text class="label[^>]*>([^<]*)</text>`)
	sourcePattern = regexp.MustCompile(`(?s)<details class="told source">.*?<summary>([^<]*)<span class="machine">([^<]*)</span></summary>\s*<p class="quiet machine">([^<]*)</p>\s*<pre[^>]*>(.*?)</pre>`)
	tagPattern    = regexp.MustCompile(`<[^>]*>`)
)

// TestLabNamesWhatWasCharged: the large figure names the course's price only
// where the course was bought, and is green for no broken variant.
func TestLabNamesWhatWasCharged(t *testing.T) {
	t.Parallel()
	s, _ := onDatabase(t)
	for experiment, want := range map[string][][3]string{
		"same-key-another-body": {
			{"", "$49.00", "charged for one $49.00 course"},
			{"", "$9,000.00", "charged, in 1 charge"},
			{"", "$49.00", "charged for one $49.00 course"},
			{"wrong", "$125.00", "charged, in 2 charges, where there should be 1"},
			{"right", "$49.00", "charged for one $49.00 course"},
		},
		"client-keys": {
			{"wrong", "$98.00", "charged for one $49.00 course"},
			{"wrong", "$49.00", "charged for 2 courses of $49.00"},
			{"wrong", "$49.00", "charged for 2 courses of $49.00"},
			{"right", "$49.00", "charged for one $49.00 course"},
			{"right", "$128.00", "charged, in 2 charges"},
		},
		"completer": {
			{"", "$49.00", "charged, in 1 charge"},
			{"right", "$49.00", "charged for one $49.00 course"},
		},
	} {
		var got [][3]string
		for _, m := range figurePattern.FindAllStringSubmatch(s.measured(experiment), -1) {
			got = append(got, [3]string(m[1:]))
		}
		require.Equal(t, want, got, experiment)
	}
}

// TestLabSaysWhatHappened: a label of a drawing says which thing it was that
// lapsed, passed or was lost, as the table beside it does.
func TestLabSaysWhatHappened(t *testing.T) {
	t.Parallel()
	s, _ := onDatabase(t)
	for experiment, want := range map[string][]string{
		"retention":     {"25 hours pass", "25 hours pass", "25 hours pass"},
		"expiring-lock": {"lock expires", "lease lapses"},
		"what-sticks":   {"provider's answer is lost", "lease lapses", "provider's answer is lost"},
	} {
		var got []string
		for _, m := range labelPattern.FindAllStringSubmatch(s.measured(experiment), -1) {
			got = append(got, html.UnescapeString(m[1]))
		}
		require.Equal(t, want, got, experiment)
	}
}

// TestLabShowsTheShopsCode: each place that a variant names is shown with its
// file, its line and its source, as this program was built from it.
func TestLabShowsTheShopsCode(t *testing.T) {
	t.Parallel()
	s := withLab(t, &handLab{})
	for _, e := range racelab.All() {
		var want, got [][2]string
		for _, v := range e.Variants {
			switch {
			case v.Uses != nil && v.Shop == nil:
				want = append(want, [2]string{"The shop’s own code, run here: ", v.Uses.Symbol})
			case v.Uses != nil:
				want = append(want, [2]string{"Run here: ", v.Uses.Symbol})
			}
			if v.Shop != nil {
				want = append(want, [2]string{"The shop’s own code: ", v.Shop.Symbol})
			}
		}
		for _, m := range sourcePattern.FindAllStringSubmatch(s.send(get("/lab/"+e.Name, fromBrowser)).page(), -1) {
			got = append(got, [2]string{m[1], m[2]})
			require.Regexp(t, `^(idempotency|checkout)/\w+\.go:[1-9]\d*$`, m[3], m[2])
			code := html.UnescapeString(tagPattern.ReplaceAllString(m[4], ""))
			name := regexp.MustCompile(`\w+$`).FindString(m[2])
			require.Regexp(t, `(?m)\A(//.*\n)+(func|type)( \(\w+ \*?\w+\))? `+name+`\b[^\n]*\{$`, code, m[2])
			require.Regexp(t, `\n}\z`, code, m[2])
		}
		require.Equal(t, want, got, e.Name)
	}
}
