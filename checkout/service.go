package checkout

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"payonce/idempotency"
)

// The defaults of Config.
const (
	DefaultProviderTimeout = 15 * time.Second
	DefaultOrderExpiry     = 20 * time.Hour
	DefaultResendWindow    = 15 * time.Minute
	DefaultRefundWindow    = 336 * time.Hour
	DefaultActionTimeout   = 15 * time.Minute
)

// recordTimeout bounds a record phase, which goes on when the client is gone.
const recordTimeout = 15 * time.Second

// Config are the parts and settings of a Service.
type Config struct {
	// Pool and Ledger reach the same database. Required.
	Pool   *pgxpool.Pool
	Ledger *idempotency.Ledger
	// Provider takes the money. Required.
	Provider Provider
	// Live is true if the provider moves real money; an answer of the other
	// mode is never settled.
	Live bool
	// Methods are the payment methods that the page offers and Pay accepts.
	Methods []Method
	// ConfirmationTokens is true if Pay accepts confirmation tokens, which the
	// Payment Element makes; without Methods it accepts nothing else.
	ConfirmationTokens bool
	// PartialRefunds is true if Refund accepts less than the whole payment.
	PartialRefunds bool
	// PublicURL is the shop's own address, without a slash at its end: where
	// the bank sends a buyer back to. Required.
	PublicURL string
	// ProviderTimeout is the deadline of the whole call phase of one attempt,
	// all its calls together. It must be shorter than the ledger's lease.
	// Optional. Default DefaultProviderTimeout.
	ProviderTimeout time.Duration
	// OrderExpiry is an order's life. Optional. Default DefaultOrderExpiry.
	OrderExpiry time.Duration
	// ResendWindow is how long after its claim a confirm may be repeated.
	// Optional. Default DefaultResendWindow.
	ResendWindow time.Duration
	// ActionTimeout is how long the bank may wait for the buyer before the
	// completer asks and cancels. Optional. Default DefaultActionTimeout.
	ActionTimeout time.Duration
	// RefundWindow is how long after the payment the buyer may take the money
	// back. Optional. Default DefaultRefundWindow.
	RefundWindow time.Duration
	// Log gets what an operator must see. Optional. Default discards.
	Log *slog.Logger
}

// Service is the checkout: every rule of the shop that touches money. Its
// methods are safe for concurrent use, in any number of processes on one
// database.
type Service struct {
	Config
	pool     *pgxpool.Pool
	ledger   *idempotency.Ledger
	provider Provider
	log      *slog.Logger
}

// New makes a Service. It returns an error if a required part is missing.
func New(c Config) (*Service, error) {
	if c.Pool == nil || c.Ledger == nil || c.Provider == nil || c.PublicURL == "" {
		return nil, errors.New("checkout: Config.Pool, Ledger, Provider and PublicURL are required")
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	orDefault(&c.ProviderTimeout, DefaultProviderTimeout)
	orDefault(&c.OrderExpiry, DefaultOrderExpiry)
	orDefault(&c.ResendWindow, DefaultResendWindow)
	orDefault(&c.RefundWindow, DefaultRefundWindow)
	orDefault(&c.ActionTimeout, DefaultActionTimeout)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Service{Config: c, pool: c.Pool, ledger: c.Ledger, provider: c.Provider, log: c.Log}, nil
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Methods are the payment methods that may be sent, in the order of the page.
func (s *Service) Methods() []Method { return s.Config.Methods }

// detach gives a context that ignores the client and has its own deadline: a
// hang-up after the claim must change nothing, or the charge would be made and
// never recorded.
func detach(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
