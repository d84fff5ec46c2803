package e2e

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/playwright-community/playwright-go"
	"github.com/stretchr/testify/require"
)

// window is a person with a browser: cookies and storage of their own, and one
// tab or several.
type window struct {
	t       *testing.T
	d       *deployment
	url     string
	context playwright.BrowserContext
	*tab

	mu          sync.Mutex
	sent        []submission
	faults      []string
	memories    []string // addresses of pages out of the back/forward cache
	intercepted int      // requests that a handler of intercept was given
}

// submission is a payment that a page sent, as the browser saw it leave.
type submission struct{ path, key, method string }

// withoutScript, and what else a window may be opened with.
func withoutScript(o *playwright.BrowserNewContextOptions) {
	o.JavaScriptEnabled = playwright.Bool(false)
}

// modes are the two ways that most pages are tested in.
var modes = []struct {
	name   string
	option func(*playwright.BrowserNewContextOptions)
	script bool
}{
	{"WithScript", func(*playwright.BrowserNewContextOptions) {}, true},
	{"WithoutScript", withoutScript, false},
}

// browse opens a window on a shop, for as long as the test runs.
func (d *deployment) browse(t *testing.T, at *shop, options ...func(*playwright.BrowserNewContextOptions)) *window {
	t.Helper()
	takeTable(t)
	browser, err := plainBrowser()
	require.NoError(t, err)
	return d.browseIn(t, browser, at.url, options...)
}

func (d *deployment) browseIn(t *testing.T, browser playwright.Browser, address string, options ...func(*playwright.BrowserNewContextOptions)) *window {
	t.Helper()
	settings := playwright.BrowserNewContextOptions{
		BaseURL:       &address,
		ReducedMotion: playwright.ReducedMotionReduce,
		Locale:        playwright.String("en-US"),
	}
	for _, option := range options {
		option(&settings)
	}
	var context playwright.BrowserContext
	require.NoError(t, answered("a window", func() (err error) {
		context, err = browser.NewContext(settings)
		return err
	}))
	w := &window{t: t, d: d, url: address, context: context}
	context.SetDefaultTimeout(float64(patience.Milliseconds()))
	require.NoError(t, context.Tracing().Start(playwright.TracingStartOptions{Snapshots: playwright.Bool(true)}))
	t.Cleanup(w.close)
	w.listen()
	w.tab = w.another()
	return w
}

// policyReport makes a violation of the Content-Security-Policy heard, of those too
// that the console does not tell.
const policyReport = `addEventListener("securitypolicyviolation", (e) => console.error("Content Security Policy: " + e.violatedDirective + " " + e.blockedURI))`

// listen notes what no page may do, whatever its test is about.
func (w *window) listen() {
	require.NoError(w.t, w.context.AddInitScript(playwright.Script{Content: playwright.String(policyReport)}))
	w.context.OnWebError(func(e playwright.WebError) { w.blame("an error of the script: " + e.Error().Error()) })
	w.context.OnConsole(func(m playwright.ConsoleMessage) {
		if strings.Contains(m.Text(), "Content Security Policy") {
			w.blame("the console: " + m.Text())
		}
	})
	w.context.OnRequest(func(r playwright.Request) {
		w.note(r)
		to, err := url.Parse(r.URL())
		ours := err == nil && (to.Scheme+"://"+to.Host == w.url || to.Host == w.d.stripe.addr && r.IsNavigationRequest())
		if !ours && to.Scheme != "data" && to.Scheme != "about" && to.Scheme != "blob" {
			w.blame("a request to " + r.URL())
		}
	})
}

// intercept puts a handler between all pages of the window and what they ask of
// the addresses that match a pattern.
func (w *window) intercept(pattern string, handler func(playwright.Route)) {
	w.t.Helper()
	require.NoError(w.t, w.context.Route(pattern, func(r playwright.Route) {
		// Playwright has just read, with no lock of its own, whether the window is
		// closed. Its close takes this lock before, which makes that no data race.
		w.mu.Lock()
		w.intercepted++
		w.mu.Unlock()
		handler(r)
	}))
}

// letThrough ends what intercept began.
func (w *window) letThrough(pattern string) {
	w.t.Helper()
	require.NoError(w.t, w.context.Unroute(pattern))
}

func (w *window) blame(fault string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fault)
}

// note keeps a payment that is sent.
func (w *window) note(r playwright.Request) {
	to, err := url.Parse(r.URL())
	if err != nil || r.Method() != http.MethodPost || !strings.HasSuffix(to.Path, "/payments") {
		return
	}
	body, err := r.PostData()
	if err != nil {
		return
	}
	s := submission{path: to.Path}
	if key := r.Headers()["idempotency-key"]; key != "" {
		s.key = strings.Trim(key, `"`)
		if found := regexp.MustCompile(`"payment_method":"([^"]*)"`).FindStringSubmatch(body); found != nil {
			s.method = found[1]
		}
	} else if fields, err := url.ParseQuery(body); err == nil {
		s.key, s.method = fields.Get("idempotency_key"), fields.Get("payment_method")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, s)
}

// submissions are the payments that the pages of this window have sent.
func (w *window) submissions() []submission {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// requireOneKey requires that all submissions carried one key, and returns it.
func (w *window) requireOneKey() string {
	w.t.Helper()
	sent := w.submissions()
	require.NotEmpty(w.t, sent)
	for _, s := range sent {
		require.Equal(w.t, sent[0], s, "each is the same payment under the same key")
	}
	return sent[0].key
}

// resultsDir is where the traces of failed tests are kept.
var resultsDir = filepath.Join("..", "test-results")

// close requires that no page misbehaved. Of a test that failed it keeps what
// each tab shows, and the trace of all that happened, for "playwright show-trace".
func (w *window) close() {
	w.mu.Lock()
	faults := slices.Clone(w.faults)
	w.mu.Unlock()
	if len(faults) > 0 {
		w.t.Errorf("what no page may do: %s", strings.Join(faults, "; "))
	}
	if w.t.Failed() {
		w.keep()
	} else {
		_ = w.context.Tracing().Stop()
	}
	// A browser that is asked to close a window just while a page of it goes
	// elsewhere may never answer. What a test asks for is done by now, so a window
	// that stays open until the browser ends is none of its faults.
	for _, page := range w.context.Pages() {
		_, _ = page.Goto("about:blank", playwright.PageGotoOptions{Timeout: playwright.Float(10_000)})
	}
	w.mu.Lock()
	intercepted := w.intercepted // see intercept
	w.mu.Unlock()
	if err := answered("closing a window", func() error { return w.context.Close() }); err != nil {
		w.t.Logf("%v, after %d requests were intercepted", err, intercepted)
	}
}

// keep writes down how a test that failed looked.
func (w *window) keep() {
	dir := filepath.Join(resultsDir, regexp.MustCompile(`[^\w/.-]+`).ReplaceAllString(w.t.Name(), "_"))
	_ = os.MkdirAll(dir, 0o755)
	for i, page := range w.context.Pages() {
		_, _ = page.Screenshot(playwright.PageScreenshotOptions{
			Path: playwright.String(filepath.Join(dir, fmt.Sprintf("tab-%d.png", i+1))), FullPage: playwright.Bool(true), Timeout: playwright.Float(10_000),
		})
		w.t.Logf("tab %d: %s", i+1, page.URL())
	}
	if err := w.context.Tracing().Stop(filepath.Join(dir, "trace.zip")); err != nil {
		w.t.Logf("no trace: %v", err)
	}
	w.t.Logf("kept in %s", dir)
}

// customer is the same person, asking as a program.
func (w *window) customer() *customer {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(w.t, err)
	c := &customer{t: w.t, d: w.d, url: w.url, jar: jar}
	u, err := url.Parse(w.url)
	require.NoError(w.t, err)
	if u.Hostname() == elsewhere { // which only the browser knows
		c.url = "http://127.0.0.1:" + u.Port()
		u, _ = url.Parse(c.url)
	}
	cookies, err := w.context.Cookies()
	require.NoError(w.t, err)
	for _, cookie := range cookies {
		jar.SetCookies(u, []*http.Cookie{{Name: cookie.Name, Value: cookie.Value, Path: "/"}})
	}
	return c
}

// loseSession takes the cookies of a checkout that nobody has paid. Its script
// first has the answer to its question for the charges: one that comes later
// would bring a session back.
func (w *window) loseSession(script bool) {
	w.t.Helper()
	if script {
		require.NoError(w.t, expect.Locator(w.Locator(".count-value")).ToHaveText("0"))
	}
	require.NoError(w.t, w.context.ClearCookies())
}
