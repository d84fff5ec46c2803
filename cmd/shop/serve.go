package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
	"payonce/idempotency/racelab"
	"payonce/migrations"
	"payonce/web"
)

// serveCommand is the shop.
type serveCommand struct{ config }

// answerMargin is for reading the request and writing the answer.
const answerMargin = 5 * time.Second

// answerTimeout is how long an answer may take: what is cut off before has
// charged, and did not say so. A shutdown waits as long for those in flight.
func (c *config) answerTimeout() time.Duration {
	return checkout.LongestAnswer(c.Wait, c.ProviderTimeout) + answerMargin
}

// Run opens the shop and keeps it open until a signal. Then it accepts nothing
// more, lets what is in flight record its outcome, and stops what it started.
func (c *serveCommand) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	log := newLog(to.err)

	// The ports first: the commonest mistake, found before anything is started.
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("ADDR: %w: set ADDR to a free address, such as 127.0.0.1:8081", err)
	}
	defer func() { _ = listener.Close() }()
	var metrics net.Listener
	if c.MetricsAddr != "" {
		if metrics, err = net.Listen("tcp", c.MetricsAddr); err != nil {
			return fmt.Errorf("METRICS_ADDR: %w: set METRICS_ADDR to a free address", err)
		}
		defer func() { _ = metrics.Close() }()
	}

	back, err := c.openBackend(ctx, log)
	if err != nil {
		return err
	}
	defer back.close(log)

	shop, closeShop, err := c.open(ctx, back, listener.Addr(), log)
	if err != nil {
		return err
	}
	defer closeShop()

	server := &http.Server{
		Handler:           shop,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      c.answerTimeout(),
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(shop.Close)
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(listener) }()
	if metrics != nil {
		go func() { failed <- http.Serve(metrics, shop.MetricsHandler()) }()
	}
	c.greet(to.out, back)

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("closing: no new requests; those in flight record their outcome")
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.answerTimeout())
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}

// open puts the parts of the shop together.
func (c *serveCommand) open(ctx context.Context, back *backend, listener net.Addr, log *slog.Logger) (*web.Server, func(), error) {
	instance := instanceName(c.Addr)
	ledger, err := idempotency.New(idempotency.Config{
		Pool: back.pool, Instance: instance, Lease: c.Lease, Wait: c.Wait, Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	stripe, err := stripepay.New(stripepay.Config{SecretKey: back.stripeKey, Base: back.stripeBase})
	if err != nil {
		return nil, nil, err
	}
	var methods []checkout.Method
	if !c.element() {
		methods = checkout.TestMethods()
	}
	if c.demo() && c.local() {
		methods = append(methods, checkout.FaultMethods()...)
	}
	service, err := checkout.New(checkout.Config{
		Pool: back.pool, Ledger: ledger, Provider: stripe, Live: c.live(), Methods: methods, ConfirmationTokens: c.element(),
		PartialRefunds: c.demo(), PublicURL: c.PublicURL, ProviderTimeout: c.ProviderTimeout,
		OrderExpiry: c.OrderExpiry, ResendWindow: c.ResendWindow, RefundWindow: c.RefundWindow,
		ActionTimeout: c.ActionTimeout, Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	hook := newHook(c.webhookSecrets())
	mode := web.StripeLocal
	switch {
	case c.live():
		mode = web.StripeLive
	case !c.local():
		mode = web.StripeTest
	}
	var clientSecret func(context.Context, string) (string, error)
	if c.element() {
		clientSecret = stripe.ClientSecret
	}
	shop, err := web.New(web.Config{
		Service: service, Ledger: ledger, SessionSecret: back.sessionSecret, PublicURL: c.PublicURL, Stripe: mode, Demo: c.demo(),
		PublishableKey: c.StripePublishableKey, ClientSecret: clientSecret,
		Policy: web.Policy{
			Wait: c.Wait, Lease: c.Lease, ProviderTimeout: c.ProviderTimeout, ResendWindow: c.ResendWindow,
			Retention: c.Retention, OrderExpiry: c.OrderExpiry, RefundWindow: c.RefundWindow,
			ActionTimeout: c.ActionTimeout, EventRetention: c.EventRetention, CompleterInterval: c.CompleterInterval,
		},
		Completes: c.CompleterInterval > 0,
		Metrics:   newMetrics(service.Stuck, log),
		Facts:     []string{"PostgreSQL " + back.version, "Stripe API " + stripesim.APIVersion},
		Webhook:   hook.verify,
		Charges:   stripe.Charges,
		Lab:       racelab.New(back.pool.Config().ConnConfig), // its own connections, never the pool's
		Ready:     func(ctx context.Context) error { return migrations.Check(ctx, back.pool) },
		Log:       log,
	})
	if err != nil {
		return nil, nil, err
	}
	removeHook := func() {}
	if c.local() {
		if removeHook, err = hook.register(ctx, stripe, listener, log); err != nil {
			return nil, nil, err
		}
	}
	stopRoles := play(ctx, c.roles(service, ledger, log))
	return shop, func() {
		shop.Close() // waits for the lab's runs to have dropped what they made
		removeHook()
		stopRoles()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := ledger.Close(closing); err != nil {
			log.Warn("writing the last replays", slog.Any("err", err))
		}
	}, nil
}

// greet says where the shop is and what stands behind it.
func (c *serveCommand) greet(to io.Writer, back *backend) {
	fmt.Fprintf(to, "\nPay Once is open: %s\n\n", c.PublicURL)
	fmt.Fprintf(to, "  PostgreSQL  %s\n", back.databaseNote)
	fmt.Fprintf(to, "  Stripe      %s\n\n", back.stripeNote)
}

// instanceName tells the processes of one database apart in the history.
func instanceName(addr string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	_, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("%s:%s/%d", host, port, os.Getpid())
}

// migrateCommand brings the schema up to date.
type migrateCommand struct{ database }

// Run migrates and ends.
func (c *migrateCommand) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	log := newLog(to.err)
	back := &backend{}
	defer back.close(log)
	if err := back.openDatabase(ctx, c.database, log); err != nil {
		return err
	}
	fmt.Fprintf(to.out, "The schema is at version %d: %s\n", migrations.Version(), back.databaseNote)
	return nil
}

func newLog(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
