// Package web is the shop over HTTP: pages for people and JSON for programs, by
// the same routes, from the same stored answers.
//
// It parses and checks what comes in, asks the Service, and turns what comes
// back into an answer. It decides nothing about money: the key is an argument
// of the call, not a middleware, because a middleware can neither put the
// charge between two transactions nor tie the order to the record.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"payonce/checkout"
	"payonce/idempotency"
)

// Service is the checkout as the web needs it. It is declared here, by its
// caller, so that the tests of the input can hold a fake; *checkout.Service is
// the real one, and the contract of each method is there.
type Service interface {
	Catalogue(ctx context.Context, account string) ([]checkout.Offer, error)
	Offer(ctx context.Context, account, slug string) (checkout.Offer, error)
	Order(ctx context.Context, account, id string) (checkout.Order, error)
	Orders(ctx context.Context, account string) ([]checkout.Order, error)
	Methods() []checkout.Method
	PlaceOrder(ctx context.Context, r checkout.OrderRequest) (idempotency.Response, error)
	Pay(ctx context.Context, r checkout.PaymentRequest) (idempotency.Response, error)
	Refund(ctx context.Context, r checkout.RefundRequest) (idempotency.Response, error)
	Cancel(ctx context.Context, r checkout.CancelRequest) (checkout.CancelView, error)
	Ask(ctx context.Context, account, order string) error
	Returned(ctx context.Context, order, token string) (checkout.ReturnState, error)
	HandleEvent(ctx context.Context, e checkout.Event) (checkout.EventResult, error)
	OrdersOf(ctx context.Context, accounts ...string) ([]checkout.Order, error)
	OrderOfPayment(ctx context.Context, account, payment string) (checkout.Order, error)
	Disputes(ctx context.Context, account, order string) ([]checkout.Dispute, error)
}

// StripeMode says what kind of money the shop takes. Every page shows it.
type StripeMode string

// The kinds of money.
const (
	StripeLocal StripeMode = "local" // the local Stripe: no money at all
	StripeTest  StripeMode = "test"  // Stripe's test mode
	StripeLive  StripeMode = "live"  // real money
)

// Policy holds the figures in force, for the published policy. None of them is
// applied here, except RefundWindow, which decides whether a page offers the
// refund.
type Policy struct {
	Wait            time.Duration // how long a duplicate waits for the first answer
	Lease           time.Duration // how long a claim stands without its owner
	ProviderTimeout time.Duration // the call phase of one attempt
	ResendWindow    time.Duration // how long an unknown payment is repeated rather than asked about
	Retention       time.Duration // how long a finished key is remembered
	OrderExpiry     time.Duration // how long an order stays open
	RefundWindow    time.Duration // how long after paying a refund may be asked for
	ActionTimeout   time.Duration // how long a bank may wait for its buyer
	EventRetention  time.Duration // how long Stripe's events are remembered
	// CompleterInterval is how often this shop looks for what nobody is left to
	// finish; 0 is never.
	CompleterInterval time.Duration
}

// Config is what New needs.
type Config struct {
	// Service does the work. Required.
	Service Service

	// Ledger is what the pages read about keys. Required.
	Ledger Ledger

	// Account says who sends the request: the place of a team's own login. The
	// account is the scope of every key, so it must be stable, 1 to 255 bytes of
	// UTF-8, and no secret. ok is false for somebody who is not known, an error
	// is for a login that cannot be asked. Optional. Default: an anonymous
	// account, a random id in a signed cookie.
	Account func(*http.Request) (account string, ok bool, err error)

	// SessionSecret signs the cookie of anonymous accounts; whoever has it can
	// be anybody. At least 32 bytes, the same for every instance. Required,
	// unless Account is set.
	SessionSecret []byte

	// PublicURL is where buyers find the shop, such as https://shop.example:
	// scheme and host, nothing behind. Its origin is trusted to post forms, also
	// behind a proxy that changes the Host, and with https the cookie is
	// Secure. Required.
	PublicURL string

	// Stripe is the kind of money. Required.
	Stripe StripeMode

	// PublishableKey is Stripe's, for the Payment Element on the checkout page: a
	// card is typed into a frame of Stripe's, and the page is given a confirmation
	// token for it, which Service must accept. The page is allowed to load Stripe.js
	// then, and no other page is. Optional. Default: the page lists the methods of
	// Service.
	PublishableKey string

	// ClientSecret gives the client secret of a PaymentIntent for whose challenge
	// (3-D Secure) Stripe names no page to link to, or nothing if there is no such
	// challenge. With PublishableKey Stripe.js then shows it on the order's page.
	// Optional. Default: such a payment can only be given up for another card.
	ClientSecret func(ctx context.Context, intent string) (string, error)

	// Demo offers to start over as a new customer, and the payment methods that
	// make the network misbehave.
	Demo bool

	// Policy holds the figures in force. Required; each more than nothing, but
	// for CompleterInterval.
	Policy Policy

	// Completes is true if a completer runs, in this shop or in another on the
	// same database. Only then do the pages promise that the shop keeps asking
	// while the buyer is away.
	Completes bool

	// Webhook checks the signature of a delivery over its raw body, and reads
	// its event. Optional. Default: the shop has no webhook endpoint.
	Webhook func(body []byte, signature string) (checkout.Event, error)

	// Charges asks Stripe how many charges of a PaymentIntent succeeded. With
	// Demo it is shown beside "Try to break it", where the shop's own word would
	// prove nothing. Optional. Default: that panel is not offered; nor is it with
	// PublishableKey, since a confirmation token is good for one payment.
	Charges func(ctx context.Context, intent string) (int, error)

	// Lab runs the experiments of the race lab, with Demo. Optional. Default: the
	// shop has no race lab.
	Lab Lab

	// Facts are short truths for the foot of every page, such as
	// "PostgreSQL 17.6". Optional.
	Facts []string

	// Ready returns an error while the shop cannot sell. It gets two seconds.
	// Optional. Default: always ready.
	Ready func(context.Context) error

	// Metrics is the registry that the web's metrics join. Optional. Default: a
	// registry of its own.
	Metrics *prometheus.Registry

	// Tracing wraps every request in a span of the global OpenTelemetry provider.
	Tracing bool

	// Log gets a line a request, and the errors that strangers are not told.
	// Optional. Default: nothing is logged.
	Log *slog.Logger
}

// Server is the shop as an http.Handler. It sets no timeouts, because the
// deadlines of a checkout live in its contexts: a handler that is cut off after
// the charge and before the record is how people come to be charged twice.
type Server struct {
	cfg     Config
	handler http.Handler
	session *session
	origins *http.CrossOriginProtection
	metrics *metrics
	routes  []string
	paths   map[string]bool
	policy  policyView
	watch   *ledgerWatch
	lab     *labRuns // nil: there is none
}

// New checks the configuration and builds the shop. Every mistake in the
// configuration is found here, none by a request.
func New(cfg Config) (*Server, error) {
	if cfg.Service == nil {
		return nil, errors.New("web: Service is required")
	}
	if cfg.Ledger == nil {
		return nil, errors.New("web: Ledger is required")
	}
	switch cfg.Stripe {
	case StripeLocal, StripeTest, StripeLive:
	default:
		return nil, fmt.Errorf("web: Stripe is %q, and must be local, test or live", cfg.Stripe)
	}
	if cfg.Demo && cfg.Stripe == StripeLive {
		return nil, errors.New("web: Demo is not possible with real money")
	}
	if cfg.PublishableKey != "" && !strings.HasPrefix(cfg.PublishableKey, "pk_") {
		return nil, errors.New("web: PublishableKey must begin with pk_, since every buyer is shown it")
	}
	if err := cfg.Policy.check(); err != nil {
		return nil, err
	}
	public, err := publicOrigin(cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	origins := http.NewCrossOriginProtection()
	if err := origins.AddTrustedOrigin(public.Scheme + "://" + public.Host); err != nil {
		return nil, fmt.Errorf("web: trusting the origin of PublicURL: %w", err)
	}
	// A delivery is judged by its signature alone: it carries no cookie that a
	// page of another site could abuse.
	origins.AddInsecureBypassPattern("POST " + webhookPath)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Ready == nil {
		cfg.Ready = func(context.Context) error { return nil }
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}

	s := &Server{cfg: cfg, origins: origins, policy: publish(cfg.Policy)}
	s.watch = newLedgerWatch(s)
	if cfg.Demo && cfg.Lab != nil {
		s.lab = newLabRuns(cfg.Lab, cfg.Log)
	}
	if cfg.Account == nil {
		if s.session, err = newSession(cfg.SessionSecret, public.Scheme == "https"); err != nil {
			return nil, err
		}
	}
	if s.metrics, err = newMetrics(cfg.Metrics); err != nil {
		return nil, err
	}

	e := echo.New()
	e.HTTPErrorHandler = s.fail
	s.route(e)
	s.paths = map[string]bool{}
	for _, r := range e.Routes() {
		s.paths[r.Path] = true
		s.routes = append(s.routes, r.Method+" "+r.Path)
	}
	s.handler = e
	if cfg.Tracing {
		s.handler = otelhttp.NewHandler(e, "shop")
	}
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends the pages that are kept up to date, which would hold up a shutdown
// for as long as somebody watches, and the runs of the lab:
// http.Server.RegisterOnShutdown is its place. All other requests are answered
// as before. It returns when no run has a schema in the database any more, and
// may be called more than once.
func (s *Server) Close() {
	s.watch.close()
	if s.lab != nil {
		s.lab.close()
	}
}

// Routes lists what is served, such as "POST /orders/:id/payments", for whoever
// describes or audits it.
func (s *Server) Routes() []string { return slices.Sorted(slices.Values(s.routes)) }

// publicOrigin reads Config.PublicURL. Its error repeats no password.
func publicOrigin(text string) (*url.URL, error) {
	const shape = "and must be a scheme and a host, such as https://shop.example"
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("web: PublicURL cannot be read, " + shape)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil ||
		(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("web: PublicURL is %q, %s", u.Redacted(), shape)
	}
	return u, nil
}

func (p Policy) check() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"Wait", p.Wait},
		{"Lease", p.Lease},
		{"ProviderTimeout", p.ProviderTimeout},
		{"ResendWindow", p.ResendWindow},
		{"Retention", p.Retention},
		{"OrderExpiry", p.OrderExpiry},
		{"RefundWindow", p.RefundWindow},
		{"ActionTimeout", p.ActionTimeout},
		{"EventRetention", p.EventRetention},
	} {
		if f.d <= 0 {
			return fmt.Errorf("web: Policy.%s is %s, and must be more than nothing", f.name, f.d)
		}
	}
	if p.CompleterInterval < 0 {
		return fmt.Errorf("web: Policy.CompleterInterval is %s, and must not be less than nothing", p.CompleterInterval)
	}
	return nil
}
