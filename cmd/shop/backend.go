package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"payonce/migrations"
	"payonce/migrations/localpg"
)

// backend is what the shop stands on: a database and a Stripe, its own or
// others'.
type backend struct {
	pool          *pgxpool.Pool
	version       string // of PostgreSQL
	stripeKey     string
	stripeBase    string
	sessionSecret []byte

	databaseNote, stripeNote string

	postgres *localpg.Server // nil with DATABASE_URL
	stripe   *localStripe    // nil with STRIPE_SECRET_KEY
}

// openBackend reaches or starts the database and Stripe.
func (c *config) openBackend(ctx context.Context, log *slog.Logger) (_ *backend, err error) {
	b := &backend{stripeKey: c.StripeSecretKey, stripeBase: c.StripeAPIBase, sessionSecret: []byte(c.SessionSecret)}
	defer func() {
		if err != nil {
			b.close(log)
		}
	}()
	// Stripe first: what can be wrong with it is found at once, and a database
	// may take its time.
	if err := b.openStripe(ctx, c); err != nil {
		return nil, err
	}
	if err := b.openDatabase(ctx, c.database, log); err != nil {
		return nil, err
	}
	if len(b.sessionSecret) == 0 {
		folder, err := localpg.OpenFolder(c.DataDir)
		if err != nil {
			return nil, err
		}
		secret, err := folder.Secret("session")
		if err != nil {
			return nil, err
		}
		b.sessionSecret = []byte(secret)
	}
	return b, nil
}

// openDatabase reaches the database, or starts the local one, and migrates it.
func (b *backend) openDatabase(ctx context.Context, c database, log *slog.Logger) error {
	address := c.DatabaseURL
	if address == "" {
		server, err := localpg.Start(ctx, localpg.Options{DataDir: c.DataDir, Log: log})
		if err != nil {
			return fmt.Errorf("the local PostgreSQL: %w", err)
		}
		b.postgres, address = server, server.URL("")
	}
	if err := migrations.Up(ctx, address); err != nil {
		return c.unusable(err, address)
	}
	pool, err := openPool(ctx, address, c.DBMaxConns)
	if err != nil {
		return c.unusable(err, address)
	}
	b.pool = pool
	if err := pool.QueryRow(ctx, "SHOW server_version").Scan(&b.version); err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	b.version, _, _ = strings.Cut(b.version, " ")
	b.databaseNote = b.version + ", at DATABASE_URL"
	if b.postgres != nil {
		b.databaseNote = b.version + ", the shop's own, in " + b.postgres.Folder().Path()
	}
	return nil
}

// unusable says what is wrong with the database at an address, without the
// address's password.
func (c database) unusable(err error, address string) error {
	var away *pgconn.ConnectError
	if c.DatabaseURL != "" && errors.As(err, &away) {
		// pgx tells of every address that it tried, a line each; one is enough.
		lines := strings.Split(strings.TrimSpace(away.Error()), "\n")
		err = fmt.Errorf("DATABASE_URL: %s: start that database, or set another", strings.TrimSpace(lines[len(lines)-1]))
		return withoutPassword(err, address)
	}
	return withoutPassword(fmt.Errorf("the database: %w", err), address)
}

// openPool makes the pool. Every session has limits, so that a fault holds
// locks and connections for seconds, not for ever.
func openPool(ctx context.Context, address string, conns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	if conns > 0 {
		config.MaxConns = conns
	}
	config.MinIdleConns = min(2, config.MaxConns)
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	for name, value := range map[string]string{
		"application_name":                    "payonce",
		"lock_timeout":                        "5s",
		"statement_timeout":                   "15s",
		"idle_in_transaction_session_timeout": "15s",
	} {
		if config.ConnConfig.RuntimeParams[name] == "" {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// openStripe reaches the local Stripe, or notes the real one.
func (b *backend) openStripe(ctx context.Context, c *config) error {
	if !c.local() {
		switch {
		case c.live():
			b.stripeNote = "live: real money"
		case c.StripeAPIBase != "":
			b.stripeNote = "at " + c.StripeAPIBase + ", with a test key"
		default:
			b.stripeNote = "Stripe's test mode: no real money"
		}
		if c.element() {
			b.stripeNote += "; cards by the Payment Element"
		}
		return nil
	}
	folder, err := localpg.OpenFolder(c.DataDir)
	if err != nil {
		return err
	}
	if b.stripe, err = useLocalStripe(ctx, folder, c.StripeSimAddr); err != nil {
		return err
	}
	b.stripeKey, b.stripeBase = localStripeKey, b.stripe.base()
	b.stripeNote = "the local one, at " + b.stripeBase + ": no real money"
	return nil
}

// close stops what was started, in the opposite order. The last shop of a
// folder takes PostgreSQL and the local Stripe with it.
func (b *backend) close(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if b.pool != nil {
		b.pool.Close()
	}
	if b.stripe != nil {
		if err := b.stripe.stop(ctx); err != nil {
			log.Warn("stopping the local Stripe", slog.Any("err", err))
		}
	}
	if b.postgres != nil {
		if err := b.postgres.Stop(ctx); err != nil {
			log.Warn("stopping the local PostgreSQL", slog.Any("err", err))
		}
	}
}

// withoutPassword takes the password of the address out of an error's text.
func withoutPassword(err error, address string) error {
	u, parseErr := url.Parse(address)
	if parseErr != nil || u.User == nil {
		return err
	}
	if password, ok := u.User.Password(); ok && password != "" && strings.Contains(err.Error(), password) {
		return errors.New(strings.ReplaceAll(err.Error(), password, "..."))
	}
	return err
}
