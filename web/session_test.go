package web_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/securecookie"
	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/web"
)

// forged signs a session as the shop does, with a secret of one's own.
func forged(t *testing.T, secret []byte) *http.Cookie {
	t.Helper()
	codec := securecookie.New(secret, nil).SetSerializer(securecookie.NopEncoder{})
	value, err := codec.Encode("payonce", []byte("acct_forged"))
	require.NoError(t, err)
	return &http.Cookie{Name: "payonce", Value: value}
}

func TestSession(t *testing.T) {
	t.Parallel()

	t.Run("AnyReadStartsOne", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/", "/courses/" + slug, "/orders", "/orders/" + someOrder, "/docs/idempotency", "/openapi.json"} {
			s := open(t)
			s.cookie = nil
			got := s.send(get(path))
			require.Len(t, got.cookies, 1, path)
			c := got.cookies[0]
			require.Equal(t, "payonce", c.Name)
			require.Equal(t, "/", c.Path)
			require.Equal(t, 365*24*60*60, c.MaxAge)
			require.True(t, c.HttpOnly)
			require.False(t, c.Secure, "the shop is on http")
			require.Equal(t, http.SameSiteLaxMode, c.SameSite)
			require.NotContains(t, got.header.Get("Cache-Control"), "public", "a shared cache would hand it to everybody")
		}
	})

	t.Run("NotByHealthOrFiles", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/healthz", "/readyz", "/static/x/pay.css", "/nothing"} {
			s := open(t)
			s.cookie = nil
			require.Empty(t, s.send(get(path)).cookies, path)
		}
	})

	t.Run("IsKept", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		require.Empty(t, s.send(get("/")).cookies)
		s.send(post("/orders", `{"course":"a"}`))
		s.send(post("/orders", `{"course":"a"}`))
		first, second := s.fake.writes[0].(checkout.OrderRequest), s.fake.writes[1].(checkout.OrderRequest)
		require.Equal(t, first.Account, second.Account)
		require.GreaterOrEqual(t, len(strings.TrimPrefix(first.Account, "acct_")), 26, "130 bits in base32")
	})

	t.Run("TwoCustomersAreTwoAccounts", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.send(post("/orders", `{"course":"a"}`))
		s.cookie = s.newCustomer()
		s.send(post("/orders", `{"course":"a"}`))
		require.NotEqual(t, s.fake.writes[0].(checkout.OrderRequest).Account, s.fake.writes[1].(checkout.OrderRequest).Account)
	})

	t.Run("IsSecureWithHTTPS", func(t *testing.T) {
		t.Parallel()
		s := open(t, func(c *web.Config) { c.PublicURL = "https://shop.test" })
		require.Equal(t, "__Host-payonce", s.cookie.Name)
		require.True(t, s.cookie.Secure)
		s.send(post("/orders", `{"course":"a"}`))
		require.Len(t, s.fake.writes, 1)
	})

	for name, cookie := range map[string]func(*testing.T, *shop) string{
		"None":            func(*testing.T, *shop) string { return "" },
		"AnotherSecret":   func(t *testing.T, _ *shop) string { return forged(t, []byte(strings.Repeat("x", 32))).String() },
		"Garbage":         func(*testing.T, *shop) string { return "payonce=garbage" },
		"AnotherName":     func(_ *testing.T, s *shop) string { return "session=" + s.cookie.Value },
		"ATruncatedValue": func(_ *testing.T, s *shop) string { return "payonce=" + s.cookie.Value[:len(s.cookie.Value)-4] },
		"TheBareAccount":  func(*testing.T, *shop) string { return "payonce=acct_forged" },
	} {
		t.Run("WithoutOneAPostIsRefused/"+name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			sent := cookie(t, s)
			s.cookie = nil
			for _, r := range []*http.Request{
				post("/orders", `{"course":"a"}`, header("Cookie", sent)),
				post(payments, withVisa, header("Cookie", sent)),
				post(refunds, `{"amount":1}`, header("Cookie", sent)),
				post("/orders", ``, key(), header("Cookie", sent)),
			} {
				got := s.send(r)
				require.Equal(t, 401, got.status)
				require.Equal(t, "no_session", got.problem().Code)
				require.Empty(t, got.cookies, "a session that a POST starts would protect nothing")
			}
			got := s.send(form(payments, "payment_method=a&idempotency_key=k", header("Cookie", sent)))
			require.Equal(t, 401, got.status)
			require.Contains(t, got.page(), "We do not know who you are yet.")
			require.Empty(t, s.fake.writes)
			require.Len(t, s.send(get("/", header("Cookie", sent))).cookies, 1, "a read starts a new one")
		})
	}

	t.Run("OfTheSameSecretIsGood", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.cookie = forged(t, secret)
		s.send(post("/orders", `{"course":"a"}`))
		require.Equal(t, "acct_forged", s.fake.writes[0].(checkout.OrderRequest).Account)
	})
}

func TestStartOver(t *testing.T) {
	t.Parallel()

	t.Run("MakesANewCustomer", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		got := s.send(request(http.MethodPost, "/session", "", nil))
		require.Equal(t, 204, got.status)
		require.Len(t, got.cookies, 1)
		require.NotEqual(t, s.cookie.Value, got.cookies[0].Value)

		got = s.send(form("/session", ""))
		require.Equal(t, 303, got.status)
		require.Equal(t, "/", got.header.Get("Location"))
		require.Len(t, got.cookies, 1)
		require.Contains(t, s.send(get("/orders", fromBrowser)).page(), `action="/session"`)
	})

	t.Run("OnlyInDemoMode", func(t *testing.T) {
		t.Parallel()
		s := open(t, func(c *web.Config) { c.Demo = false })
		require.Equal(t, 404, s.send(request(http.MethodPost, "/session", "", nil)).status)
		require.NotContains(t, s.send(get("/orders", fromBrowser)).page(), `action="/session"`)
	})

	t.Run("NotFromAnotherSite", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		got := s.send(request(http.MethodPost, "/session", "", []with{header("Sec-Fetch-Site", "cross-site")}))
		require.Equal(t, 403, got.status)
		require.Empty(t, got.cookies)
	})
}

// TestAccountOfATeam: a login of one's own takes the place of the cookie.
func TestAccountOfATeam(t *testing.T) {
	t.Parallel()
	login := func(c *web.Config) {
		c.SessionSecret = nil
		c.Account = func(r *http.Request) (string, bool, error) {
			switch user := r.Header.Get("X-User"); user {
			case "":
				return "", false, nil
			case "broken":
				return "", false, errors.New("the login cannot be asked")
			default:
				return user, true, nil
			}
		}
	}
	s := open(t, login)

	require.Equal(t, 200, s.send(get("/")).status, "a stranger may look")
	require.Empty(t, s.send(get("/")).cookies)
	require.Equal(t, 200, s.send(get("/courses/"+slug, fromBrowser)).status)
	for _, path := range []string{"/orders", "/orders/" + someOrder, "/courses/" + slug + "/lessons/1"} {
		require.Equal(t, 401, s.send(get(path)).status, path)
	}
	require.Equal(t, 401, s.send(post("/orders", `{"course":"a"}`)).status)
	require.Equal(t, 500, s.send(post("/orders", `{"course":"a"}`, header("X-User", "broken"))).status)
	require.Equal(t, 500, s.send(post("/orders", `{"course":"a"}`, header("X-User", "a\x00b"))).status)
	require.Equal(t, 500, s.send(post("/orders", `{"course":"a"}`, header("X-User", strings.Repeat("x", 256)))).status)
	require.Empty(t, s.fake.writes)
	require.Equal(t, 404, s.send(request(http.MethodPost, "/session", "", nil)).status)

	require.Equal(t, 201, s.send(post("/orders", `{"course":"a"}`, header("X-User", "user_7"))).status)
	require.Equal(t, "user_7", s.fake.writes[0].(checkout.OrderRequest).Account)
}
