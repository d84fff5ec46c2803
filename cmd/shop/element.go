package main

import (
	"errors"
	"fmt"
	"strings"

	"payonce/checkout/stripepay"
)

// element is true if buyers type their cards into Stripe's Payment Element,
// whose confirmation tokens are then all that is accepted. Else the page lists
// Stripe's test methods.
func (c *config) element() bool { return c.StripePublishableKey != "" }

// checkPublishableKey refuses a key that is not for everybody's eyes, and one
// with which nobody could pay.
func (c *config) checkPublishableKey() error {
	switch {
	case c.live() && !c.element():
		return errors.New("STRIPE_PUBLISHABLE_KEY is empty and STRIPE_SECRET_KEY is live: set the publishable key of the same account (pk_live_...), with which the page takes cards")
	case !c.element():
		return nil
	case c.local():
		return errors.New("STRIPE_PUBLISHABLE_KEY is set without STRIPE_SECRET_KEY: set both or neither")
	}
	if err := stripepay.CheckPublishableKey(c.StripePublishableKey, c.StripeSecretKey); err != nil {
		return fmt.Errorf("STRIPE_PUBLISHABLE_KEY: %w", err)
	}
	return nil
}

// checkRealMoney refuses an address at which nobody can pay for real: Stripe's
// form takes live cards over https only, and so does the cookie of an account.
func (c *config) checkRealMoney() error {
	if c.live() && !strings.HasPrefix(c.PublicURL, "https://") {
		return fmt.Errorf("PUBLIC_URL is %q and STRIPE_SECRET_KEY is live: set an address with https, without which no live card is taken", c.PublicURL)
	}
	return nil
}
