package web

import "github.com/labstack/echo/v4"

// contentPolicy lets a page load the shop's own files and post to the shop,
// and nothing else. form-action holds for redirects as well, so no answer to a
// form may lead off the site.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// elementPolicy is contentPolicy for the page that has Stripe's Payment Element,
// and for the one on which Stripe.js shows the bank's question. It adds Stripe.js,
// its frames with the card form and the bank's question, and the API that they
// speak to, all of them Stripe's own
// (https://docs.stripe.com/security/guide#content-security-policy).
const elementPolicy = "default-src 'none'; script-src 'self' https://js.stripe.com https://*.js.stripe.com; style-src 'self'; img-src 'self'; " +
	"connect-src 'self' https://api.stripe.com; frame-src https://js.stripe.com https://*.js.stripe.com https://hooks.stripe.com; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// headers sets what every answer carries. no-store is the default, because most
// answers hold a key or depend on the account; a handler that knows better
// says so.
func (s *Server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderContentSecurityPolicy, contentPolicy)
		h.Set(echo.HeaderXContentTypeOptions, "nosniff")
		// Not no-referrer: it makes browsers send "Origin: null" with honest
		// forms, which then look cross-site.
		h.Set(echo.HeaderReferrerPolicy, "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set(echo.HeaderCacheControl, "no-store")
		return next(c)
	}
}

// sameSite refuses what a page of another site makes a browser send. A program
// that sends neither Sec-Fetch-Site nor Origin passes: it has no cookie that
// somebody else could abuse.
func (s *Server) sameSite(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.origins.Check(c.Request()); err != nil {
			return errCrossSite
		}
		return next(c)
	}
}

// withoutQuery refuses a query string: a request is its path and its declared
// fields, and whatever stood in a query would not be part of its fingerprint.
func withoutQuery(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		u := c.Request().URL
		if u.RawQuery != "" || u.ForceQuery {
			return invalid(firstParameter(u.RawQuery), "Send the fields in the body; a query string is not accepted here.")
		}
		return next(c)
	}
}

// private lets a browser keep a page that holds no key, and makes it ask again
// each time. Nothing here is public: any first answer can set a session, and a
// shared cache would hand it to everybody.
func private(c echo.Context) {
	c.Response().Header().Set(echo.HeaderCacheControl, "private, no-cache")
}
