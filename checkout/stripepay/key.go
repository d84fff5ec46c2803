package stripepay

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// What CheckKey, and so New, refuses. The texts say what to do and never hold
// the key.
var (
	ErrNoKey           = errors.New("the Stripe secret key is empty")
	ErrMalformedKey    = errors.New("the Stripe secret key must be one word that begins with sk_ or rk_")
	ErrMalformedBase   = errors.New("the Stripe API base must be an http or https address without user, query or fragment")
	ErrLiveKeyWithBase = errors.New("a live Stripe key is sent to https://api.stripe.com only; use a test key with another API base")
)

// What CheckPublishableKey refuses. The texts never hold the key: what was set
// by mistake may be the secret one.
var (
	ErrSecretKeyPublished      = errors.New("this is a secret key, and every buyer would be shown it: set the publishable key (pk_...)")
	ErrMalformedPublishableKey = errors.New("the Stripe publishable key must be one word that begins with pk_test_ or pk_live_")
	ErrKeysOfTwoModes          = errors.New("the publishable key and the secret key are of two modes: set two test keys (pk_test_..., sk_test_...) or two live ones")
)

// CheckKey tells whether a secret key may be sent to an API base, where an
// empty base is Stripe's own. It returns ErrNoKey, ErrMalformedKey (a
// publishable key, a stray line break), ErrMalformedBase, or ErrLiveKeyWithBase:
// a live key is real money, and whoever answers elsewhere would hold it.
func CheckKey(key, base string) error {
	if key == "" {
		return ErrNoKey
	}
	if !graphic(key) || !(strings.HasPrefix(key, "sk_") || strings.HasPrefix(key, "rk_")) {
		return ErrMalformedKey
	}
	if base == "" {
		return nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%w: %q", ErrMalformedBase, base)
	}
	if LiveKey(key) && !stripes(u) {
		return ErrLiveKeyWithBase
	}
	return nil
}

// CheckPublishableKey tells whether a publishable key may be shown to buyers
// beside a secret key that CheckKey has let pass. It returns
// ErrSecretKeyPublished, ErrMalformedPublishableKey, or ErrKeysOfTwoModes: a
// token of one mode is unknown in the other, so that nobody could pay.
func CheckPublishableKey(publishable, secret string) error {
	for _, prefix := range []string{"sk_", "rk_", "whsec_"} {
		if strings.HasPrefix(publishable, prefix) {
			return ErrSecretKeyPublished
		}
	}
	if !graphic(publishable) || !(strings.HasPrefix(publishable, "pk_test_") || strings.HasPrefix(publishable, "pk_live_")) {
		return ErrMalformedPublishableKey
	}
	if LiveKey(publishable) != LiveKey(secret) {
		return ErrKeysOfTwoModes
	}
	return nil
}

// LiveKey tells whether a key, of whatever kind, moves real money: sk_live_,
// rk_live_, pk_live_, sk_org_live_.
func LiveKey(key string) bool { return strings.Contains(key, "_live_") }

// stripes tells whether an address is Stripe's API. The whole host is compared:
// api.stripe.com.example and api.stripe.com@example are not Stripe's.
func stripes(u *url.URL) bool {
	return u.Scheme == "https" && strings.EqualFold(u.Hostname(), "api.stripe.com") && (u.Port() == "" || u.Port() == "443")
}
