package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/idempotency"
)

// database says where the data is.
type database struct {
	DataDir     string `env:"DATA_DIR" placeholder:"FOLDER" help:"Where the local PostgreSQL and the local Stripe keep their data. Two shops on one folder share them. Default: payonce in the user's cache folder; for root /var/cache/payonce."`
	DatabaseURL string `env:"DATABASE_URL" placeholder:"URL" help:"A PostgreSQL 15 or later. Default: a local one, which the shop starts by itself."`
	DBMaxConns  int32  `env:"DB_MAX_CONNS" default:"8" help:"Connections at most. No checkout holds one while it waits for Stripe, so few are enough."`
}

// provider says who takes the money.
type provider struct {
	StripeSecretKey     string `env:"STRIPE_SECRET_KEY" placeholder:"sk_..." help:"Stripe's secret key. Default: the local Stripe, and no real money."`
	StripeWebhookSecret string `env:"STRIPE_WEBHOOK_SECRET" placeholder:"whsec_..." help:"Signs Stripe's events; two with a comma while rolling. Required with STRIPE_SECRET_KEY; the local Stripe's is made at start."`
	StripeAPIBase       string `env:"STRIPE_API_BASE" placeholder:"URL" help:"Another address for Stripe's API; never with a live key. Default: Stripe's own."`
	StripeSimAddr       string `env:"STRIPE_SIM_ADDR" default:"127.0.0.1:12111" help:"Where the local Stripe listens. Anyone on this machine may ask it GET /v1/charges with the key sk_test_local."`
}

// config is everything that can be set. Each flag has an environment variable
// of the same name; the reasons stand in the help.
type config struct {
	database
	provider

	StripePublishableKey string `env:"STRIPE_PUBLISHABLE_KEY" placeholder:"pk_..." help:"Stripe's publishable key. With it cards are typed into Stripe's Payment Element; without it the page lists Stripe's test methods. Required with a live secret key."`

	Addr        string `env:"ADDR" default:"127.0.0.1:8080" help:"Where the shop listens."`
	PublicURL   string `env:"PUBLIC_URL" placeholder:"URL" help:"Where buyers find the shop, without a path. Its origin may post forms. Default: from ADDR."`
	MetricsAddr string `env:"METRICS_ADDR" placeholder:"ADDR" help:"Where /metrics is served. Default: nowhere."`

	SessionSecret string `env:"SESSION_SECRET" placeholder:"SECRET" help:"Signs the session's cookie: 32 bytes or more, the same for every instance. Default: random, kept in DATA_DIR; required with DATABASE_URL or STRIPE_SECRET_KEY."`
	Demo          string `env:"DEMO" enum:"on,off,auto" default:"auto" help:"on, off or auto: methods that make the network misbehave, partial refunds, start over, the race lab's page. auto is on with the local Stripe. Never with a live key."`

	Lease             time.Duration `env:"LEASE" default:"60s" help:"How long a dead owner's claim blocks its key. Above PROVIDER_TIMEOUT plus 2 s, or living owners are taken over."`
	ProviderTimeout   time.Duration `env:"PROVIDER_TIMEOUT" default:"15s" help:"The deadline of one attempt's whole call phase, all its calls to Stripe together."`
	Wait              time.Duration `env:"WAIT" default:"1s" help:"How long a duplicate waits for the first answer before it is told to come back. Well under a client's own timeout."`
	Retention         time.Duration `env:"RETENTION" default:"72h" help:"How long a finished key is remembered. Above every path that can still retry, and 24 h, which is how long Stripe remembers."`
	OrderExpiry       time.Duration `env:"ORDER_EXPIRY" default:"20h" help:"How long an order can be paid. Under 23 h: Stripe forgets keys after 24."`
	ResendWindow      time.Duration `env:"RESEND_WINDOW" default:"15m" help:"How long after its claim an unknown payment may be sent again; later it is asked about and canceled. With LEASE under 23 h."`
	CompleterInterval time.Duration `env:"COMPLETER_INTERVAL" default:"5s" help:"How often abandoned payments are looked for; 0 is never."`
	EventRetention    time.Duration `env:"EVENT_RETENTION" default:"1080h" help:"How long a handled event is remembered. Above the 30 days within which Stripe can send one again."`
	ActionTimeout     time.Duration `env:"ACTION_TIMEOUT" default:"15m" help:"How long the bank may wait for the buyer (3-D Secure) before the payment is asked about and canceled."`
	RefundWindow      time.Duration `env:"REFUND_WINDOW" default:"336h" help:"How long after paying a buyer may take the money back."`
}

// stripeKeptFor is when Stripe may begin to forget an idempotency key, less an
// hour for clocks and messages on their way. After that, a repeated confirm
// would charge afresh.
const stripeKeptFor = 23 * time.Hour

// leaseMargin is what a lease must leave after the call phase: time to record.
const leaseMargin = 2 * time.Second

// local is true if the shop runs its own Stripe.
func (p provider) local() bool { return p.StripeSecretKey == "" }

func (p provider) live() bool { return stripepay.LiveKey(p.StripeSecretKey) }

func (c *config) demo() bool { return c.Demo == "on" || (c.Demo == "auto" && c.local()) }

// check refuses settings under which a card could be charged twice, or which
// cannot work: one clear line each, before anything is started.
func (c *config) check() error {
	refuse := func(format string, args ...any) error { return fmt.Errorf(format, args...) }
	if err := c.database.check(); err != nil {
		return err
	}
	switch {
	case c.ProviderTimeout < time.Second:
		return refuse("PROVIDER_TIMEOUT is %s: set at least 1s", c.ProviderTimeout)
	case c.Lease <= c.ProviderTimeout+leaseMargin:
		return refuse("LEASE is %s, and a living owner would be taken over: set it above PROVIDER_TIMEOUT (%s) plus %s", c.Lease, c.ProviderTimeout, leaseMargin)
	case c.Wait <= 0 || c.Wait > 30*time.Second:
		return refuse("WAIT is %s: set more than nothing and at most 30s", c.Wait)
	case c.OrderExpiry < time.Minute || c.OrderExpiry >= stripeKeptFor:
		return refuse("ORDER_EXPIRY is %s: set 1m or more, and less than %s, since Stripe forgets keys after 24 h", c.OrderExpiry, stripeKeptFor)
	case c.ResendWindow <= 0 || c.ResendWindow+c.Lease >= stripeKeptFor:
		return refuse("RESEND_WINDOW is %s: with LEASE (%s) it must stay under %s, since Stripe forgets keys after 24 h", c.ResendWindow, c.Lease, stripeKeptFor)
	case c.Retention < idempotency.MinRetention:
		return refuse("RETENTION is %s: set at least %s, since Stripe remembers keys that long", c.Retention, idempotency.MinRetention)
	case c.Retention <= c.OrderExpiry+c.ResendWindow+c.Lease:
		return refuse("RETENTION is %s: set it above ORDER_EXPIRY (%s) plus RESEND_WINDOW and LEASE, since all of that can still retry", c.Retention, c.OrderExpiry)
	case c.CompleterInterval < 0 || (c.CompleterInterval > 0 && c.CompleterInterval < 100*time.Millisecond) || c.CompleterInterval > time.Hour:
		return refuse("COMPLETER_INTERVAL is %s: set 0 (never), or 100ms to 1h", c.CompleterInterval)
	case c.EventRetention < checkout.MinEventRetention:
		return refuse("EVENT_RETENTION is %s: set at least %s, since Stripe can send an event again for 30 days", c.EventRetention, checkout.MinEventRetention)
	case c.ActionTimeout < time.Minute || c.ActionTimeout >= stripeKeptFor:
		return refuse("ACTION_TIMEOUT is %s: set 1m or more, and less than %s", c.ActionTimeout, stripeKeptFor)
	case c.RefundWindow <= 0:
		return refuse("REFUND_WINDOW is %s: set more than nothing", c.RefundWindow)
	case c.live() && c.demo():
		return refuse("DEMO is on and STRIPE_SECRET_KEY is live: set DEMO=off or a test key (sk_test_...)")
	case c.DatabaseURL != "" && c.SessionSecret == "":
		return refuse("SESSION_SECRET is empty and DATABASE_URL is set: set 32 random bytes or more, the same for every instance")
	case !c.local() && c.SessionSecret == "":
		return refuse("SESSION_SECRET is empty and STRIPE_SECRET_KEY is set: set 32 random bytes or more, the same for every instance")
	case c.SessionSecret != "" && len(c.SessionSecret) < 32:
		return refuse("SESSION_SECRET is %d bytes long: set 32 random bytes or more", len(c.SessionSecret))
	}
	if err := c.provider.check(); err != nil {
		return err
	}
	if err := c.checkPublishableKey(); err != nil {
		return err
	}
	if err := c.checkWebhookSecrets(); err != nil {
		return err
	}
	if err := c.checkAddresses(); err != nil {
		return err
	}
	return c.checkRealMoney()
}

// check refuses a Stripe that cannot be meant.
func (p provider) check() error {
	if p.local() {
		if p.StripeAPIBase != "" {
			return errors.New("STRIPE_API_BASE is set without STRIPE_SECRET_KEY: set both or neither")
		}
		return nil
	}
	if err := stripepay.CheckKey(p.StripeSecretKey, p.StripeAPIBase); err != nil {
		return fmt.Errorf("STRIPE_SECRET_KEY: %w", err)
	}
	return nil
}

func (c database) check() error {
	if c.DBMaxConns < 2 || c.DBMaxConns > 1000 {
		return fmt.Errorf("DB_MAX_CONNS is %d: set 2 to 1000", c.DBMaxConns)
	}
	if c.DatabaseURL == "" {
		return nil
	}
	if _, err := pgxpool.ParseConfig(c.DatabaseURL); err != nil {
		// Not err: it quotes what was set, and with it a password.
		return errors.New("DATABASE_URL is not the address of a PostgreSQL: set postgres://user:password@host:port/database")
	}
	return nil
}

// splitAddress gives the parts of host:port. ok is false for what nobody can
// listen on.
func splitAddress(address string) (host, port string, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return "", "", false
	}
	_, err = net.LookupPort("tcp", port)
	return host, port, err == nil
}

func (c *config) checkAddresses() error {
	host, port, ok := splitAddress(c.Addr)
	if !ok {
		return fmt.Errorf("ADDR is %q: set host:port, such as 127.0.0.1:8080", c.Addr)
	}
	if _, _, ok := splitAddress(c.StripeSimAddr); c.local() && !ok {
		return fmt.Errorf("STRIPE_SIM_ADDR is %q: set host:port, such as 127.0.0.1:12111", c.StripeSimAddr)
	}
	if _, _, ok := splitAddress(c.MetricsAddr); c.MetricsAddr != "" && !ok {
		return fmt.Errorf("METRICS_ADDR is %q: set host:port, such as 127.0.0.1:9090", c.MetricsAddr)
	}
	if c.PublicURL == "" {
		if c.live() {
			return errors.New("STRIPE_SECRET_KEY is live and PUBLIC_URL is empty: set the address under which buyers find the shop, with https")
		}
		if host == "" || host == "0.0.0.0" || host == "::" {
			host = "localhost"
		}
		c.PublicURL = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("PUBLIC_URL is %q: set a scheme and a host, such as https://shop.example", c.PublicURL)
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	return nil
}
