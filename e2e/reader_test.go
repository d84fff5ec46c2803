package e2e

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

// reader is a browser without script: it reads pages, submits forms as they
// are, and follows where it is led.
type reader struct{ *customer }

// page is where a reader ended up.
type page struct {
	status int
	path   string   // with its query
	led    []int    // the statuses of the redirects on the way
	header []string // Idempotent-Replayed of each of them
	html   string
}

// accepts is what a browser sends.
const accepts = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// visit opens a page.
func (r reader) visit(path string) page {
	r.t.Helper()
	return r.follow(http.MethodGet, path, "")
}

// submit sends a form. fill sets its visible fields, as names and values in turn.
func (r reader) submit(f form, fill ...string) page {
	r.t.Helper()
	fields := url.Values{}
	for name, value := range f.hidden {
		fields.Set(name, value)
	}
	for i := 0; i < len(fill); i += 2 {
		fields.Set(fill[i], fill[i+1])
	}
	return r.follow(http.MethodPost, f.action, fields.Encode())
}

// follow sends a request and reads on until a page comes, which must be one
// that a person can read: never JSON, never an empty answer.
func (r reader) follow(method, path, body string) page {
	r.t.Helper()
	var p page
	for range 5 {
		headers := []string{"Accept", accepts, "Sec-Fetch-Site", "same-origin"}
		if method == http.MethodPost {
			headers = append(headers, "Content-Type", "application/x-www-form-urlencoded", "Origin", r.url)
		}
		a := r.raw(method, path, body, headers...)
		require.NoError(r.t, a.err)
		if a.status != http.StatusSeeOther {
			require.Equal(r.t, "text/html; charset=UTF-8", a.header.Get("Content-Type"), a.body)
			require.Equal(r.t, 1, strings.Count(a.body, "<h1"), "one heading")
			p.status, p.path, p.html = a.status, path, a.body
			return p
		}
		require.Equal(r.t, http.MethodPost, method, "only a form leads elsewhere")
		require.Empty(r.t, a.header.Get("Retry-After"), "a browser would wait before it follows")
		p.led = append(p.led, a.status)
		p.header = append(p.header, a.header.Get("Idempotent-Replayed"))
		method, path, body = http.MethodGet, a.header.Get("Location"), ""
		require.True(r.t, strings.HasPrefix(path, "/"), "led off the site, to %s", path)
	}
	require.Fail(r.t, "led in circles")
	return p
}

// form is a form of a page.
type form struct {
	action string
	hidden map[string]string
	html   string
}

var (
	formPattern  = regexp.MustCompile(`(?s)<form[^>]*\saction="([^"]*)"[^>]*>(.*?)</form>`)
	inputPattern = regexp.MustCompile(`<input[^>]*\stype="hidden"[^>]*>`)
	namePattern  = regexp.MustCompile(`\sname="([^"]*)"`)
	valuePattern = regexp.MustCompile(`\svalue="([^"]*)"`)
	tagPattern   = regexp.MustCompile(`(?s)<(style|script)[^>]*>.*?</(style|script)>|<[^>]*>`)
)

// form finds the form of a page by the text of its button.
func (p page) form(t require.TestingT, button string) form {
	for _, found := range formPattern.FindAllStringSubmatch(p.html, -1) {
		if !strings.Contains(text(found[2]), button) {
			continue
		}
		f := form{action: html.UnescapeString(found[1]), hidden: map[string]string{}, html: found[2]}
		for _, input := range inputPattern.FindAllString(found[2], -1) {
			name, value := namePattern.FindStringSubmatch(input), valuePattern.FindStringSubmatch(input)
			require.NotNil(t, name, input)
			require.NotNil(t, value, input)
			f.hidden[html.UnescapeString(name[1])] = html.UnescapeString(value[1])
		}
		return f
	}
	require.Fail(t, "no such form", "%s in %s", button, p.text())
	return form{}
}

// text is what a person reads. What lies in a template is not on the page until a script puts it there.
func (p page) text() string { return text(templatePattern.ReplaceAllString(p.html, " ")) }

var templatePattern = regexp.MustCompile(`(?s)<template\b.*?</template>`)

func text(markup string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tagPattern.ReplaceAllString(markup, " "))), " ")
}
