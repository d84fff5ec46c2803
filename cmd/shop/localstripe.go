package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"payonce/checkout/stripesim"
	"payonce/migrations/localpg"
)

// localStripeKey is the key under which the local Stripe knows the shop.
const localStripeKey = "sk_test_local"

// localStripe is this shop's hold on the local Stripe of its folder. It is a
// process of its own, because the real Stripe does not die with the shop.
type localStripe struct {
	use  *localpg.Use
	addr string
	id   string
}

// useLocalStripe finds the local Stripe of the folder, or starts it.
func useLocalStripe(ctx context.Context, folder *localpg.Folder, addr string) (*localStripe, error) {
	id, err := folder.ID()
	if err != nil {
		return nil, err
	}
	s := &localStripe{addr: addr, id: id}
	s.use, err = folder.Use(ctx, "stripe", func(ctx context.Context) error { return s.start(ctx, folder) })
	if err != nil {
		return nil, fmt.Errorf("the local Stripe: %w", err)
	}
	return s, nil
}

// base is the URL under which this machine reaches the local Stripe, a browser
// too: the bank's page is a link into it. Where it listens on every address, as
// in a container, that is localhost.
func (s *localStripe) base() string {
	host, port, err := net.SplitHostPort(s.addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return "http://" + net.JoinHostPort("localhost", port)
	}
	return "http://" + s.addr
}

// stop stops the local Stripe if no other shop of the folder uses it.
func (s *localStripe) stop(ctx context.Context) error {
	return s.use.Release(ctx, func(ctx context.Context) error {
		running, err := identify(ctx, s.addr)
		if err != nil || running.ID != s.id || running.PID == 0 {
			return nil // it is gone already, or not ours to stop
		}
		if err := terminate(running.PID); err != nil {
			return fmt.Errorf("stopping the local Stripe: %w", err)
		}
		return until(ctx, func() bool { return ended(running.PID) })
	})
}

// start adopts the local Stripe that answers with the folder's id, or starts
// one. Whatever else listens there is refused: a port is no identity.
func (s *localStripe) start(ctx context.Context, folder *localpg.Folder) error {
	running, err := identify(ctx, s.addr)
	switch {
	case err == nil && running.ID == s.id:
		return nil
	case err == nil:
		return fmt.Errorf("%s is taken by the local Stripe of another folder: set STRIPE_SIM_ADDR to a free address", s.addr)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s is taken by something else (%w): set STRIPE_SIM_ADDR to a free address", s.addr, err)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(folder.Path(), "stripe.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	process := exec.Command(program, "stripe", "--data-dir", folder.Path(), "--stripe-sim-addr", s.addr)
	process.Stdout, process.Stderr, process.Dir = log, log, "/"
	localpg.Detach(process)
	if err := process.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	err = until(ctx, func() bool {
		if len(ended) > 0 {
			return true
		}
		running, err := identify(ctx, s.addr)
		return err == nil && running.ID == s.id
	})
	if err != nil {
		// A start that is given up leaves no process behind.
		_ = process.Process.Kill()
		<-ended
		return fmt.Errorf("starting it: %w", err)
	}
	if len(ended) > 0 {
		return fmt.Errorf("it ended at once (%w): %s; see %s", <-ended, lastLine(log.Name()), log.Name())
	}
	return nil
}

// lastLine gives the last line of a log: why a process ended.
func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "shop: ")
}

// identify asks who listens on addr. A refused connection is ECONNREFUSED.
func identify(ctx context.Context, addr string) (stripesim.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/_sim/identity", nil)
	if err != nil {
		return stripesim.Identity{}, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}}
	answer, err := client.Do(req)
	if err != nil {
		return stripesim.Identity{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	var found stripesim.Identity
	if err := json.NewDecoder(http.MaxBytesReader(nil, answer.Body, 4096)).Decode(&found); err != nil || found.Product != stripesim.Product {
		return stripesim.Identity{}, errors.New("it does not answer as the local Stripe does")
	}
	return found, nil
}

// until polls ask until it is true, at most fifteen seconds.
func until(ctx context.Context, ask func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stripeCommand is the local Stripe as a process of its own.
type stripeCommand struct {
	DataDir       string `env:"DATA_DIR" placeholder:"FOLDER" help:"Where it keeps its journal, and whose id it answers with."`
	StripeSimAddr string `env:"STRIPE_SIM_ADDR" default:"127.0.0.1:12111" help:"Where it listens."`
}

// Run serves the local Stripe until a signal.
func (c *stripeCommand) Run(ctx context.Context, to streams) error {
	folder, err := localpg.OpenFolder(c.DataDir)
	if err != nil {
		return err
	}
	id, err := folder.ID()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.StripeSimAddr)
	if err != nil {
		return fmt.Errorf("STRIPE_SIM_ADDR: %w", err)
	}
	server, err := stripesim.New(stripesim.Config{
		ID: id, Journal: filepath.Join(folder.Path(), "stripe.journal"), Logger: newLog(to.err),
	})
	if errors.Is(err, stripesim.ErrJournalInUse) {
		return fmt.Errorf("the local Stripe of this DATA_DIR runs at another address: set STRIPE_SIM_ADDR to that one: %w", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(to.out, "The local Stripe listens on http://%s, journal in %s\n", c.StripeSimAddr, folder.Path())
	return server.Serve(ctx, listener)
}
