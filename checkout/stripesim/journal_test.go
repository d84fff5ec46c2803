package stripesim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

// TestMain lets the test's own program be a local Stripe in a process of its own, for the tests that kill one.
func TestMain(m *testing.M) {
	if path := os.Getenv("STRIPESIM_TEST_JOURNAL"); path != "" {
		serveForTest(path)
		return
	}
	os.Exit(m.Run())
}

func serveForTest(path string) {
	sim, err := stripesim.New(stripesim.Config{Journal: path, SlowCall: time.Hour})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	if err := sim.Serve(context.Background(), listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process starts a local Stripe as a process and returns a client of it, and how to kill it.
func process(t *testing.T, journal string) (*client, func()) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	command := exec.Command(program)
	command.Env = append(os.Environ(), "STRIPESIM_TEST_JOURNAL="+journal)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	kill := func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	t.Cleanup(kill)
	var addr string
	_, err = fmt.Fscanln(output, &addr)
	require.NoError(t, err)
	return &client{t: t, url: "http://" + addr, key: "sk_test_local"}, kill
}

func TestEverythingAnsweredSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "journal")
	c, kill := process(t, path)
	paid, open := c.create(), c.create()
	first := c.confirm(paid, "paid", "pm_card_visa")
	require.Equal(t, 200, first.status)
	lost := c.create()
	require.Error(t, c.confirm(lost, "lost", "pm_sim_reply_lost").err)
	_, rule := c.control("POST", "rules", `{"path":"/v1/payment_intents/*/confirm","action":"delay","delay_ms":1,"at":"execution"}`)
	slow := later(func() reply { return c.confirm(open, "slow", "pm_sim_slow") })
	status, _ := c.control("POST", "rules/"+rule["id"].(string)+"/wait", "timeout=20s")
	require.Equal(t, 200, status)
	require.Equal(t, 409, c.confirm(open, "slow", "pm_sim_slow").status)
	before := c.get("/v1/events", "limit", "100")
	kill()
	require.Error(t, (<-slow).err)

	c, _ = process(t, path)
	again := c.confirm(paid, "paid", "pm_card_visa")
	require.True(t, again.replayed())
	require.Equal(t, first.raw, again.raw)
	require.True(t, c.confirm(lost, "lost", "pm_sim_reply_lost").replayed(), "the charge and its key stand in one line")
	require.Equal(t, "requires_payment_method", c.status(open), "what was not executed is not half there")
	require.Equal(t, "succeeded", c.confirm(open, "slow", "pm_card_visa").text("status"), "and its key is free")
	require.Equal(t, before.at("data"), c.get("/v1/events", "limit", "100", "starting_after",
		c.get("/v1/events", "limit", "2").at("data").([]any)[1].(map[string]any)["id"].(string)).at("data"))
}

// reopen closes one local Stripe and opens another on its journal.
func reopen(t *testing.T, c *client, config stripesim.Config) *client {
	t.Helper()
	require.NoError(t, c.sim.Close())
	return start(t, config)
}

func TestRestartKeepsFaultsClockAndJobs(t *testing.T) {
	t.Parallel()
	config := stripesim.Config{Journal: filepath.Join(t.TempDir(), "journal"), Later: time.Hour}
	c := start(t, config)
	limited, processing, refunded := c.create(), c.create(), c.create()
	require.Equal(t, 429, c.confirm(limited, "limited", "pm_sim_rate_limited").status)
	require.Equal(t, "processing", c.confirm(processing, "", "pm_sim_processing").text("status"))
	require.Equal(t, 200, c.confirm(refunded, "", "pm_card_pendingRefund").status)
	refund := c.post("/v1/refunds", "", "payment_intent", refunded).text("id")
	require.NoError(t, c.sim.Advance(30*time.Minute))

	c = reopen(t, c, config)
	require.Equal(t, "succeeded", c.confirm(limited, "limited", "pm_sim_rate_limited").text("status"), "once is once")
	require.Equal(t, "processing", c.status(processing))
	require.NoError(t, c.sim.Advance(31*time.Minute))
	require.Eventually(t, func() bool { return c.status(processing) == "succeeded" }, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return c.get("/v1/refunds/"+refund).text("status") == "succeeded" }, 20*time.Second, time.Millisecond)

	c = reopen(t, c, config)
	require.Equal(t, 1, c.charges(processing), "a job that was done is not done again")
	require.Equal(t, 400, c.confirm(limited, "", "pm_sim_rate_limited").status, "nor once more after another restart")
	raw, err := os.ReadFile(config.Journal)
	require.NoError(t, err)
	require.NotContains(t, string(raw), `"kind":"job"`, "and forgotten")
}

func TestRestartForgetsWhatStripeForgets(t *testing.T) {
	t.Parallel()
	config := stripesim.Config{Journal: filepath.Join(t.TempDir(), "journal")}
	c := start(t, config)
	first := c.post("/v1/payment_intents", "key", "amount", "4900", "currency", "usd").text("id")
	require.NoError(t, c.sim.Advance(31*24*time.Hour))
	c = reopen(t, c, config)
	require.Empty(t, c.get("/v1/events").at("data"), "events older than 30 days")
	require.NotEqual(t, first, c.post("/v1/payment_intents", "key", "amount", "4900", "currency", "usd").text("id"), "keys older than a day")
	require.Equal(t, 200, c.get("/v1/payment_intents/"+first).status, "payments never")
}

func TestTornLastLineIsDropped(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]string{
		"half a line":            `{"account":"acct_1","put":[{"kind":"payment_in`,
		"half a line, line end":  `{"account":"acct_1","put":[{"kind":"payment_in` + "\n",
		"zeros of a lost sector": strings.Repeat("\x00", 512),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := stripesim.Config{Journal: filepath.Join(t.TempDir(), "journal")}
			c := start(t, config)
			id := c.create()
			require.NoError(t, c.sim.Close())
			file, err := os.OpenFile(config.Journal, os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = file.WriteString(tail)
			require.NoError(t, err)
			require.NoError(t, file.Close())
			c = start(t, config)
			require.Equal(t, "requires_payment_method", c.status(id))
			require.Equal(t, 200, c.confirm(id, "", "pm_card_visa").status)
			c = reopen(t, c, config)
			require.Equal(t, "succeeded", c.status(id))
		})
	}
}

func TestCorruptJournalIsNotGuessedAt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.WriteFile(path, []byte("{\"accou\n{}\n"), 0o600))
	_, err := stripesim.New(stripesim.Config{Journal: path})
	require.ErrorIs(t, err, stripesim.ErrJournalCorrupt)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "{\"accou\n{}\n", string(raw), "and left as it is")
}

func TestJournalHasOneOwner(t *testing.T) {
	t.Parallel()
	config := stripesim.Config{Journal: filepath.Join(t.TempDir(), "journal")}
	c := start(t, config)
	_, err := stripesim.New(config)
	require.ErrorIs(t, err, stripesim.ErrJournalInUse)
	c = reopen(t, c, config)
	require.Equal(t, 200, c.get("/v1/charges").status)
}

func TestJournalHoldsNoSecretKey(t *testing.T) {
	t.Parallel()
	config := stripesim.Config{Journal: filepath.Join(t.TempDir(), "journal")}
	c := start(t, config)
	c.key = "sk_test_verysecretkey"
	c.create()
	require.NoError(t, c.sim.Close())
	raw, err := os.ReadFile(config.Journal)
	require.NoError(t, err)
	require.NotContains(t, string(raw), c.key)
}

func TestRestartCompactsTheJournal(t *testing.T) {
	t.Parallel()
	config := stripesim.Config{Journal: filepath.Join(t.TempDir(), "journal")}
	c := start(t, config)
	id := c.create()
	for i := range 20 {
		require.Equal(t, 200, c.post("/v1/payment_intents/"+id, "", "description", fmt.Sprint("version ", i)).status)
	}
	lines := func() int {
		raw, err := os.ReadFile(config.Journal)
		require.NoError(t, err)
		for line := range bytes.Lines(raw) {
			require.True(t, json.Valid(line))
		}
		return bytes.Count(raw, []byte("\n"))
	}
	require.Equal(t, 21, lines())
	c = reopen(t, c, config)
	require.Equal(t, 2, lines(), "the PaymentIntent and its event")
	require.Equal(t, "version 19", c.get("/v1/payment_intents/"+id).text("description"))
}

func TestAfterCloseNothingIsPromised(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{Journal: filepath.Join(t.TempDir(), "journal")})
	id := c.create()
	require.NoError(t, c.sim.Close())
	require.Equal(t, 500, c.confirm(id, "key", "pm_card_visa").status)
	require.NoError(t, c.sim.Close(), "closing twice is closing once")
}

// TestServeStopsInOrder ends a server while one call is slow and one is held.
func TestServeStopsInOrder(t *testing.T) {
	t.Parallel()
	config := stripesim.Config{Journal: filepath.Join(t.TempDir(), "journal"), SlowCall: time.Hour}
	sim, err := stripesim.New(config)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sim.Serve(ctx, listener) }()
	c := &client{t: t, sim: sim, url: "http://" + listener.Addr().String(), key: "sk_test_local"}

	slow, held := c.create(), c.create()
	reached := c.rule(stripesim.Rule{Path: "/v1/payment_intents/" + slow + "/confirm", Action: stripesim.Delay, DelayMS: 1, At: stripesim.Execution})
	slowCall := later(func() reply { return c.confirm(slow, "slow", "pm_sim_slow") })
	wait(t, reached, 1)
	hold := c.rule(stripesim.Rule{Path: "/v1/payment_intents/" + held + "/confirm", Action: stripesim.Hold})
	heldCall := later(func() reply { return c.confirm(held, "held", "pm_card_visa") })
	wait(t, hold, 1)
	stop()
	require.Equal(t, 200, (<-slowCall).status, "what is slow executes at once")
	require.Error(t, (<-heldCall).err, "what is held is dropped")
	require.NoError(t, <-ended)
	_, err = http.Get(c.url)
	require.Error(t, err)

	c = start(t, config)
	require.Equal(t, "succeeded", c.status(slow))
	require.Equal(t, "requires_payment_method", c.status(held))
}
