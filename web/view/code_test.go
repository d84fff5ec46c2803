package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/web/view"
)

func TestCodeSetsKeywordsAndCommentsApart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ lang, listing, want string }{
		{"sql", "\nSELECT 1 FROM keys; -- no SELECT here\n", "<b>SELECT</b> 1 <b>FROM</b> keys; <i>-- no SELECT here</i>"},
		{"sql", "VALUES ('SELECT -- not a comment')", "<b>VALUES</b> (&#39;SELECT -- not a comment&#39;)"},
		{"go", `return "if // not a comment" // but this is`, `<b>return</b> &#34;if // not a comment&#34; <i>// but this is</i>`},
		{"http", "HTTP/1.1 409 Conflict\n  \"code\": \"key_reused\",", "HTTP/1.1 <b>409 Conflict</b>\n  &#34;code&#34;: <b>&#34;key_reused&#34;</b>,"},
		{"sh", "$ curl x # why", "<b>$</b> curl x<i> # why</i>"},
		{"text", "SELECT <b>", "SELECT &lt;b&gt;"},
		{"sql", "!! SELECT 1;\n=> COMMIT;", `<mark class="fault"><b>SELECT</b> 1;</mark>` + "\n" + `<mark class="cure"><b>COMMIT</b>;</mark>`},
		{"sql", "a\n\n\tb", "a\n\n\tb"},
	} {
		require.Contains(t, renderPage(t, view.Code(row.lang, row.listing)), "<code>"+row.want+"</code></pre>")
	}
}

func TestCodeCanBeScrolledByKeyboard(t *testing.T) {
	t.Parallel()
	pre := only(t, elements(parse(t, renderPage(t, view.Code("sql", "SELECT 1"))), named("pre")))
	require.Equal(t, "0", attr(pre, "tabindex"))
	require.Equal(t, "SQL", attr(pre, "aria-label"))
}
