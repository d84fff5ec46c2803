package stripesim

import (
	"net/http"
	"strings"
)

const testKeyPrefix = "sk_test_"

// authenticate is the first gate. Every key that begins with sk_test_ is an account of its own; sk_test_local is the
// one of the local mode.
func (s *Server) authenticate(c *call) *apiError {
	key := c.authorized
	switch {
	case key == "":
		return unauthorized("", "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').")
	case strings.HasPrefix(key, "pk_"):
		return unauthorized("secret_key_required", "This API call cannot be made with a publishable API key. Please use a secret API key.")
	case strings.HasPrefix(key, "sk_live_"), strings.HasPrefix(key, "rk_live_"):
		return unauthorized("", "Invalid API Key provided: "+mask(key)+". This is the local Stripe: a live key must never be sent to it.")
	case !strings.HasPrefix(key, testKeyPrefix) || len(key) == len(testKeyPrefix) || len(key) > 255:
		return unauthorized("", "Invalid API Key provided: "+mask(key))
	case c.connected != "":
		return newError(http.StatusForbidden, invalidRequest, "account_invalid", "", "The local Stripe has no connected accounts.")
	case c.version != "" && c.version != APIVersion:
		return refuse("", "", "Invalid Stripe API version: %s. The local Stripe speaks %s only.", c.version, APIVersion)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.account = s.account(accountID(key))
	s.requests.note(c, func(r *Request) { r.Account = c.account.id })
	return nil
}

func unauthorized(code, message string) *apiError {
	return newError(http.StatusUnauthorized, invalidRequest, code, "", message)
}

// mask shows enough of a key to recognise it by.
func mask(key string) string {
	if len(key) <= 12 {
		return "***"
	}
	return key[:8] + "***" + key[len(key)-4:]
}
