package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The script's rules and their tests, as the browser loads them.
const (
	coreScript = "/submission.js"
	coreTests  = "/testdata/submission_test.js"
)

// TestScriptCore runs the tests of the script's rules in the browser that the
// rules run in: which key is sent, when the same payment goes again, and when a
// new key may be taken.
func TestScriptCore(t *testing.T) {
	t.Parallel()
	passed, failed := runScriptCore(t, func(script string) string { return script })
	require.Empty(t, failed)
	require.Greater(t, passed, 30, "the cases were not found")
}

// TestScriptCoreMutants breaks the rules one by one: each must be missed.
func TestScriptCoreMutants(t *testing.T) {
	t.Parallel()
	for name, mutant := range map[string]struct{ old, new string }{
		"a new key although it is not safe":       {`body.safe_new_key === true && `, ``},
		"a new key for each press":                {`key: state.key, ...paying`, `key: state.key + now, ...paying`},
		"sent before it is stored":                {`[{ do: "store", submission }, ...effects]`, `[...effects, { do: "store", submission }]`},
		"an old submission is sent":               {`age <= keep`, `true`},
		"any answer is the shop's":                {`if (!a.ours) return lost(state, clock);`, ``},
		"Retry-After is not waited for":           {`Math.max(retryAfter || 0, `, `Math.max(`},
		"no jitter":                               {`random * most`, `most`},
		"a late answer counts":                    {`event.turn !== state.turn`, `false`},
		"a busy shop makes a lost answer known":   {`return wait(named, "send"`, `return wait({ ...named, unknown: false }, "send"`},
		"a lost answer is not unknown":            {`wait({ ...state, unknown: true }, "send", "lost"`, `wait(state, "send", "lost"`},
		"a second press is another submission":    {`return state.phase === "ready" && state.page`, `return state.page`},
		"no hand-over":                            {`if (over && state.unknown)`, `if (false)`},
		"sent by itself after the hand-over":      {`if (state.submission && state.handed)`, `if (false)`},
		"two minutes from each reload":            {`deadline: stored.created_at + patience`, `deadline: state.deadline`},
		"back without asking":                     {`case "back": return ask(state);`, `case "back": return { state, effects: [] };`},
		"a settled submission stays stored":       {`...(pending ? [] : [{ do: "forget" }])`, ``},
		"a pending submission is forgotten":       {`...(pending ? [] : [{ do: "forget" }])`, `{ do: "forget" }`},
		"led away from the answers of the panel":  {`notice: { says: "" } }, effects: []`, `notice: { says: "" } }, effects: [{ do: "go" }]`},
		"a closing order looks pending":           {`if (!order.payment_key) return "closing";`, ``},
		"sent sooner than a busy Stripe allows":   {`state.phase === "waiting" && known || `, ``},
		"a used key leads nowhere":                {`: leave(state, a.body.safe_new_key`, `: stop(state, a) ?? leave(state, a.body.safe_new_key`},
		"not charged while a send is on its way":  {`if (state.unknown || ["sending", "testing"].includes(state.phase))`, `if (state.unknown)`},
		"the key of another submission is resent": {`key: resend.key, ...paying`, `key: stored?.key ?? resend.key, ...paying`},
		"a second token while one is being made":  {"function press(state) {\n  if (!idle(state))", "function press(state) {\n  if (state.phase === \"sending\")"},
		"a late token is sent":                    {`, "prepared", "unprepared"`, ``},
		"a token is sent as a method":             {`return token ? { token } : { method }`, `return { method: token ?? method }`},
		"a missing element stops a submission":    {`if (!["ready", "preparing"].includes(state.phase))`, `if (false)`},
		"Pay is off for good without a token":     {`phase: "ready", notice: { says: refused`, `phase: "stopped", notice: { says: refused`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, failed := runScriptCore(t, func(script string) string {
				require.Equal(t, 1, strings.Count(script, mutant.old), "the script does not say %q once", mutant.old)
				return strings.Replace(script, mutant.old, mutant.new, 1)
			})
			require.NotEmpty(t, failed, "nobody missed it")
		})
	}
}

// runScriptCore runs the tests on the script as change leaves it.
func runScriptCore(t *testing.T, change func(string) string) (passed int, failed []any) {
	t.Helper()
	source, err := os.ReadFile("../static" + coreScript)
	require.NoError(t, err)
	script := change(string(source))
	files := http.FileServer(http.Dir("../static"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == coreScript {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(script))
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	takeTable(t)
	browser, err := plainBrowser()
	require.NoError(t, err)
	page, err := browser.NewPage()
	require.NoError(t, err)
	t.Cleanup(func() { _ = page.Close() })
	_, err = page.Goto(server.URL)
	require.NoError(t, err)
	answer, err := page.Evaluate(`async (tests) => (await import(tests)).run()`, coreTests)
	require.NoError(t, err)
	result, ok := answer.(map[string]any)
	require.True(t, ok, "%v", answer)
	passed, ok = result["passed"].(int)
	require.True(t, ok, "%v", result)
	failed, ok = result["failed"].([]any)
	require.True(t, ok, "%v", result)
	return passed, failed
}
