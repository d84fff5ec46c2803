package web_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/static"
	"payonce/web"
)

// TestEveryAnswerIsGuarded: pages, JSON, errors and redirects alike.
func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, r := range []*http.Request{
		get("/"), get("/", fromBrowser), get("/nothing"), get("/nothing", fromBrowser), get("/healthz"), get(static.Path("pay.css")),
		post(payments, withVisa), post(payments, withVisa, key()), form(payments, "payment_method=a&idempotency_key=k"),
		post(payments, withVisa, header("Sec-Fetch-Site", "cross-site")),
	} {
		h := s.send(r).header
		require.Equal(t, strict, policyOf(h))
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "same-origin", h.Get("Referrer-Policy"))
		require.NotEmpty(t, h.Get("X-Request-Id"))
		require.NotEmpty(t, h.Get("Cache-Control"))
	}
}

// TestWhatMayBeKept: a page that holds a key is kept nowhere, or the back button
// would bring a key back that has been used.
func TestWhatMayBeKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.fake.orders[someOrder] = orderOpen()
	for path, want := range map[string]string{
		"/":                    "private, no-cache",
		"/courses/" + slug:     "no-store",
		"/orders":              "no-store",
		"/orders/" + someOrder: "no-store",
		"/docs/idempotency":    "private, no-cache",
		static.Path("pay.css"): "public, max-age=31536000, immutable",
	} {
		require.Equal(t, want, s.send(get(path, fromBrowser)).header.Get("Cache-Control"), path)
	}
}

func TestCrossSite(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		changes []with
		refused bool
	}{
		"a program":                    {nil, false},
		"a form of ours":               {[]with{header("Sec-Fetch-Site", "same-origin"), header("Origin", publicURL)}, false},
		"an address typed":             {[]with{header("Sec-Fetch-Site", "none")}, false},
		"another site":                 {[]with{header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://evil.test")}, true},
		"another site, no origin":      {[]with{header("Sec-Fetch-Site", "cross-site")}, true},
		"a subdomain":                  {[]with{header("Sec-Fetch-Site", "same-site"), header("Origin", "http://blog.shop.test")}, true},
		"an old browser, another site": {[]with{header("Origin", "https://evil.test")}, true},
		"an old browser, ours":         {[]with{header("Origin", publicURL)}, false},
		"an opaque origin":             {[]with{header("Origin", "null")}, true},
		"behind a proxy": {[]with{
			header("Sec-Fetch-Site", "cross-site"), header("Origin", publicURL), func(r *http.Request) { r.Host = "10.0.0.7:8080" },
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for _, r := range []*http.Request{
				post("/orders", `{"course":"a"}`, row.changes...), post(payments, withVisa, row.changes...),
				post(refunds, `{"amount":1}`, row.changes...), request(http.MethodPost, "/session", "", row.changes),
			} {
				got := s.send(r)
				if !row.refused {
					require.Less(t, got.status, 300, r.URL)
					continue
				}
				require.Equal(t, 403, got.status, r.URL)
				require.Equal(t, "cross_site", got.problem().Code)
			}
			require.Equal(t, row.refused, len(s.fake.writes) == 0)
			require.Equal(t, 200, s.send(get("/", row.changes...)).status, "a link from elsewhere is welcome")
		})
	}

	t.Run("is a page for a browser", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		got := s.send(form(payments, "payment_method=a&idempotency_key=k", header("Sec-Fetch-Site", "cross-site")))
		require.Equal(t, 403, got.status)
		require.Contains(t, got.page(), "This request came from another site.")
	})
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := open(t)
	require.Equal(t, `{"status":"ok"}`, string(s.send(get("/healthz")).body))
	require.Equal(t, 200, s.send(get("/readyz")).status)

	s = open(t, func(c *web.Config) {
		c.Ready = func(ctx context.Context) error {
			_, bounded := ctx.Deadline()
			require.True(t, bounded)
			return errors.New("the database at 10.0.0.7 is away")
		}
	})
	got := s.send(get("/readyz"))
	require.Equal(t, 503, got.status)
	require.Equal(t, `{"status":"not_ready"}`, string(got.body))
	require.Contains(t, s.log.String(), "10.0.0.7")
	require.Equal(t, 200, s.send(get("/healthz")).status)
}

func TestStaticFiles(t *testing.T) {
	t.Parallel()
	s := open(t)
	require.Equal(t, 200, s.send(get(static.Path("pay.css"))).status)
	require.Equal(t, 200, s.send(request(http.MethodHead, static.Path("icon.svg"), "", nil)).status)
	require.Equal(t, 404, s.send(get("/static/0000/pay.css")).status)
}
