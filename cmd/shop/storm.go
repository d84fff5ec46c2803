package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// stormCommand double-submits against running shops. It is a client, and knows
// nothing but what the shops and their Stripe answer over HTTP.
type stormCommand struct {
	URL    []string      `name:"url" default:"http://127.0.0.1:8080" placeholder:"URL" help:"A running shop. May be repeated: the copies are spread over all, which must share one database. Default: ${default}."`
	Orders int           `default:"20" placeholder:"N" help:"How many customers buy a course each. Default: ${default}."`
	Copies int           `default:"8" placeholder:"M" help:"How many copies of each payment are sent at once, all with the order's one key. Default: ${default}."`
	AtOnce int           `default:"4" placeholder:"N" help:"How many orders are paid at the same time. Default: ${default}."`
	Method []string      `default:"pm_card_visa" placeholder:"ID" help:"The payment method, such as pm_sim_reply_lost. May be repeated: the orders take turns. Default: ${default}."`
	For    time.Duration `default:"2m" placeholder:"TIME" help:"How long a copy goes on asking while its outcome is unknown. Default: ${default}."`
}

// errBroken: an invariant did not hold.
var errBroken = errors.New("an invariant is broken")

// The most that a storm may be.
const (
	maxStormOrders = 100_000
	maxStormCopies = 1_000
	maxStormAtOnce = 1_000
)

func (c *stormCommand) check() error {
	within := func(name string, n, most int) error {
		if n < 1 || n > most {
			return fmt.Errorf("--%s is %d: set 1 to %d", name, n, most)
		}
		return nil
	}
	err := errors.Join(
		within("orders", c.Orders, maxStormOrders), within("copies", c.Copies, maxStormCopies), within("at-once", c.AtOnce, maxStormAtOnce))
	if err == nil && c.For <= 0 {
		err = fmt.Errorf("--for is %s: set more than nothing", c.For)
	}
	return err
}

// Run sends the storm and tells what came of it. It fails if an invariant is
// broken, or if nobody can tell of an order.
func (c *stormCommand) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	s, err := newStorm(ctx, c)
	if err != nil {
		return err
	}
	bar := newProgress(to.err, c.Orders)
	numbers, tales := make(chan int), make(chan tale)
	var buyers sync.WaitGroup
	for range min(c.AtOnce, c.Orders) {
		buyers.Go(func() {
			for n := range numbers {
				tales <- s.buy(ctx, c.Method[n%len(c.Method)], n)
			}
		})
	}
	go func() {
		defer close(tales)
		defer buyers.Wait()
		defer close(numbers)
		for n := range c.Orders {
			select {
			case numbers <- n:
			case <-ctx.Done():
				return
			}
		}
	}()
	began := time.Now()
	var all summary
	for t := range tales {
		all.add(t)
		bar.draw(all)
	}
	bar.clear()
	all.took = time.Since(began)
	if err := all.print(to.out, c); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(all.broken) > 0:
		return errBroken
	case all.failed > 0:
		return fmt.Errorf("%d of %d orders could not be placed: is every --url a running shop?", all.failed, c.Orders)
	case all.unknown > 0:
		return fmt.Errorf("of %d orders nobody can tell yet: their completer finds out, or give --for more time", all.unknown)
	}
	return nil
}

// progress draws how far a storm is, on a terminal only.
type progress struct {
	out   io.Writer
	of    int
	drawn time.Time
}

func newProgress(out io.Writer, of int) *progress {
	file, ok := out.(*os.File)
	if !ok {
		return &progress{}
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{out: out, of: of}
}

// redraw is how often the line is drawn at most.
const redraw = 50 * time.Millisecond

func (p *progress) draw(s summary) {
	if p.out == nil || time.Since(p.drawn) < redraw && s.orders < p.of {
		return
	}
	p.drawn = time.Now()
	const width = 30
	done := width * s.orders / p.of
	line := make([]byte, width)
	for i := range line {
		line[i] = ' '
		if i < done {
			line[i] = '='
		}
	}
	_, _ = fmt.Fprintf(p.out, "\r[%s] %d/%d orders, %d charges, %d replays", line, s.orders, p.of, s.charges, len(s.replayed))
}

func (p *progress) clear() {
	if p.out != nil {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
