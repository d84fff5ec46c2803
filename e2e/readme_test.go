package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadme: what the README tells people to paste works when it is pasted.
func TestReadme(t *testing.T) {
	t.Parallel()

	t.Run("FromATerminal", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile(filepath.Join("..", "README.md"))
		require.NoError(t, err)
		section := sectionOf(t, string(text), "From a terminal")
		commands, shown := fenced(t, section, "bash"), fenced(t, section, "text")

		// A copy that waits longer than the first one takes is a replay, as the
		// README shows; the first one is none, unless Stripe's event is faster than
		// its answer, as on a busy machine.
		d := deploy(t, "WAIT=10s")
		shop := d.open(t)
		d.stripe.keepToItself(t)
		for readme, here := range map[string]string{"127.0.0.1:8080": shop.addr, "127.0.0.1:12111": d.stripe.addr} {
			require.Contains(t, commands, readme)
			commands = strings.ReplaceAll(commands, readme, here)
		}
		bash := exec.CommandContext(t.Context(), "bash", "-c", commands)
		bash.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "TMPDIR="+t.TempDir())
		var printed, complaints output
		bash.Stdout, bash.Stderr = &printed, &complaints
		require.NoError(t, bash.Run(), "%s", &complaints)
		require.Empty(t, complaints.String())
		require.Equal(t, steady(shown), steady(printed.String()))
	})
}

// sectionOf returns the part of a document under a heading, up to the next
// heading of any level.
func sectionOf(t testing.TB, document, heading string) string {
	t.Helper()
	pattern := regexp.MustCompile(`(?ms)^#+ ` + regexp.QuoteMeta(heading) + `\n(.*?)(?:^#+ |\z)`)
	found := pattern.FindStringSubmatch(document)
	require.NotNil(t, found, "a section %q", heading)
	return found[1]
}

// fenced returns the only block of a language in a section.
func fenced(t testing.TB, section, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(section, -1)
	require.Len(t, found, 1, "a block of %s", language)
	return found[0][1]
}

// steady is an output without what differs from one run to the next: ids,
// and how wide a system writes its numbers.
func steady(output string) []string {
	output = regexp.MustCompile(`\b(ord|key|pay|pi|ch)_\w+`).ReplaceAllString(output, "${1}_...")
	var lines []string
	for line := range strings.Lines(output) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}
