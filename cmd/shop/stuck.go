package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"text/tabwriter"
	"time"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/idempotency"
)

// operator is a checkout for a person at a terminal, on the shop's database and
// Stripe.
func (c *operatorFlags) operator(ctx context.Context, log *slog.Logger) (*checkout.Service, func(), error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	full := config{database: c.database, provider: c.provider, SessionSecret: "unused"}
	back, err := full.openBackend(ctx, log)
	if err != nil {
		return nil, nil, err
	}
	ledger, err := idempotency.New(idempotency.Config{Pool: back.pool, Instance: instanceName("terminal:0"), Log: log})
	if err == nil {
		var stripe *stripepay.Stripe
		if stripe, err = stripepay.New(stripepay.Config{SecretKey: back.stripeKey, Base: back.stripeBase}); err == nil {
			var service *checkout.Service
			service, err = checkout.New(checkout.Config{
				Pool: back.pool, Ledger: ledger, Provider: stripe, Live: c.live(), PartialRefunds: true,
				RefundWindow: 10 * 365 * 24 * time.Hour, PublicURL: "http://unused", Log: log,
			})
			if err == nil {
				return service, func() { _ = ledger.Close(context.WithoutCancel(ctx)); back.close(log) }, nil
			}
		}
	}
	back.close(log)
	return nil, nil, err
}

type operatorFlags struct {
	database
	provider
}

// check refuses a database and a Stripe that the shop would refuse.
func (c *operatorFlags) check() error {
	if err := c.database.check(); err != nil {
		return err
	}
	return c.provider.check()
}

// stuckCommand lists what waits for a person.
type stuckCommand struct {
	operatorFlags
	Ask     string `placeholder:"ID" xor:"what" help:"Give this payment, refund or order back to the completer, from the start of its schedule; or apply this event again, by asking Stripe."`
	Dismiss string `placeholder:"ID" xor:"what" help:"Take this event or failed refund off the list: you have dealt with it by other means."`
}

// Run lists what waits for a person, or does something about one.
func (c *stuckCommand) Run(ctx context.Context, to streams) error {
	service, done, err := c.operator(ctx, newLog(to.err))
	if err != nil {
		return err
	}
	defer done()
	switch {
	case c.Ask != "":
		return c.ask(ctx, to, service)
	case c.Dismiss != "":
		if err := service.Dismiss(ctx, c.Dismiss); err != nil {
			return fmt.Errorf("%s: %w", c.Dismiss, err)
		}
		fmt.Fprintf(to.out, "%s is dismissed.\n", c.Dismiss)
		return nil
	}
	list, err := service.Stuck(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(to.out, "Nothing waits for a person.")
		return nil
	}
	table := tabwriter.NewWriter(to.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KIND\tID\tORDER\tSINCE\tWHY")
	for _, s := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Kind, s.ID, s.Order, s.Since.UTC().Format(time.RFC3339), s.Why)
	}
	return table.Flush()
}

// ask asks about one, and says what became of it.
func (c *stuckCommand) ask(ctx context.Context, to streams, service *checkout.Service) error {
	result, err := service.AskAgain(ctx, c.Ask)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.Ask, err)
	case result == checkout.EventParked:
		return fmt.Errorf("%s still cannot be applied, and stays on the list: shop stuck says why, and --dismiss takes it off", c.Ask)
	case result == checkout.EventIgnored:
		fmt.Fprintf(to.out, "%s is about nothing of this shop's, and left the list.\n", c.Ask)
	case result != "":
		fmt.Fprintf(to.out, "%s is applied.\n", c.Ask)
	default:
		fmt.Fprintf(to.out, "%s is given back to the completer.\n", c.Ask)
	}
	return nil
}

// refundCommand gives money back, the whole payment or a part of it.
type refundCommand struct {
	operatorFlags
	Payment string `arg:"" help:"The payment's id (pay_...)."`
	Amount  int64  `arg:"" help:"In minor units: 1900 is $19.00, and ¥1,900."`
	Key     string `placeholder:"KEY" help:"The idempotency key. Give the one that was printed to repeat a refund whose outcome was not known. Default: a new one."`
}

// Run refunds.
func (c *refundCommand) Run(ctx context.Context, to streams) error {
	if c.Key == "" {
		c.Key = "terminal-" + rand.Text()
	}
	key, err := idempotency.ParseKey(nil, []string{c.Key})
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	service, done, err := c.operator(ctx, newLog(to.err))
	if err != nil {
		return err
	}
	defer done()
	account, err := service.AccountOf(ctx, c.Payment)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Payment, err)
	}
	fmt.Fprintf(to.out, "key %s\n", key)
	answer, err := service.Refund(ctx, checkout.RefundRequest{
		Account: account, Key: key, Payment: c.Payment, Amount: c.Amount,
	})
	if err != nil {
		return refundTrouble(err, key)
	}
	fmt.Fprintf(to.out, "%d %s\n", answer.Status, answer.Body)
	if answer.Status >= 400 {
		return errors.New("nothing was given back")
	}
	return nil
}

// refundTrouble says what to do after a refund without an answer. A refund whose
// outcome is not known must not be made again under another key, which would be
// a second one. So whatever is not known to have given nothing back counts as
// such: a COMMIT in doubt, a claim that came and went, a database that is away
// while an earlier refund of this key is looked up.
func refundTrouble(err error, key idempotency.Key) error {
	var invalid *checkout.InvalidError
	switch {
	case errors.As(err, &invalid), errors.Is(err, checkout.ErrNotFound), errors.Is(err, idempotency.ErrKeyReused):
		return err
	case errors.Is(err, checkout.ErrProviderBusy):
		return fmt.Errorf("nothing was given back, since Stripe is busy: run this again with --key %s", key)
	case errors.Is(err, checkout.ErrProviderRefused):
		return fmt.Errorf("nothing was given back, since Stripe refused the request; the log says why. Then run this again with --key %s", key)
	case errors.Is(err, checkout.ErrOutcomeUnknown), errors.Is(err, idempotency.ErrInProgress):
		return fmt.Errorf("the outcome is not known yet: the completer goes on, or run this again with --key %s; never without", key)
	}
	return fmt.Errorf("the outcome is not known: run this again with --key %s; never without: %w", key, err)
}
