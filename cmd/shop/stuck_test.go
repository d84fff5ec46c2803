package main

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
)

func TestStuck(t *testing.T) {
	t.Parallel()

	t.Run("ListsWhatWaitsForAPersonAndGivesItBack", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		status, out, _ := s.command("stuck")
		require.Equal(t, 0, status)
		require.Equal(t, "Nothing waits for a person.\n", out)

		o, err := s.order("pm_sim_reply_lost")
		require.ErrorIs(t, err, checkout.ErrOutcomeUnknown)
		payment := o.Payments[0].ID
		s.exec(`INSERT INTO events (id, type, status, detail) VALUES ('evt_1', 'payment_intent.succeeded', 'parked', 'the amount is not the payment''s')`)
		_, out, _ = s.command("stuck")
		require.NotContains(t, out, payment, "the completer is still at it")
		require.Contains(t, out, "evt_1")

		s.exec(`UPDATE idempotency_keys SET completer_tries = 100, lease_until = lease_until - interval '30 days' WHERE status = 'in_progress'`)
		status, out, _ = s.command("stuck")
		require.Equal(t, 0, status)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, lines, 3)
		require.Regexp(t, `^KIND +ID +ORDER +SINCE +WHY$`, lines[0])
		require.Regexp(t, `(?m)^payment +`+payment+` +`+o.ID+` +\S+Z +the outcome of a payment is unknown$`, out)
		require.Regexp(t, `(?m)^event +evt_1 .*the amount is not the payment's$`, out)

		status, out, _ = s.command("stuck", "--ask", payment)
		require.Equal(t, 0, status)
		require.Equal(t, payment+" is given back to the completer.\n", out)
		done, err := s.CompleteOnce(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, done.Keys)
		require.Equal(t, checkout.OrderPaid, s.now(o.ID).Status)

		status, out, _ = s.command("stuck", "--ask", "evt_1")
		require.Equal(t, 0, status)
		require.Contains(t, out, "about nothing of this shop's")
		_, out, _ = s.command("stuck")
		require.Equal(t, "Nothing waits for a person.\n", out)
	})

	t.Run("AppliesAParkedEventAgainOrDismissesIt", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		o, err := s.order("pm_sim_reply_lost")
		require.ErrorIs(t, err, checkout.ErrOutcomeUnknown)
		s.exec(`INSERT INTO events (id, type, status, intent) SELECT x.id, 'payment_intent.succeeded', 'parked', o.intent
			FROM orders o, (VALUES ('evt_1'), ('evt_2'), ('evt_3')) AS x (id)`)
		status, out, _ := s.command("stuck", "--ask", "evt_1")
		require.Equal(t, 0, status)
		require.Equal(t, "evt_1 is applied.\n", out)
		require.Equal(t, checkout.OrderPaid, s.now(o.ID).Status)

		s.exec(`UPDATE payments SET amount = 4800`)
		status, _, says := s.command("stuck", "--ask", "evt_2")
		require.Equal(t, 1, status)
		require.Contains(t, says, "--dismiss")
		_, out, _ = s.command("stuck")
		require.Contains(t, out, "evt_2")
		for _, id := range []string{"evt_2", "evt_3"} {
			status, out, _ = s.command("stuck", "--dismiss", id)
			require.Equal(t, 0, status)
			require.Equal(t, id+" is dismissed.\n", out)
		}
		_, out, _ = s.command("stuck")
		require.Equal(t, "Nothing waits for a person.\n", out)
	})

	t.Run("SendsAFailedRefundToShopRefund", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		o := s.paid()
		payment := o.Payments[0].ID
		status, _, _ := s.command("refund", payment, "4900")
		require.Equal(t, 0, status)
		s.exec(`UPDATE refunds SET status = 'failed'`) // days later, at Stripe
		s.exec(`UPDATE payments SET refunded = 0`)
		_, out, _ := s.command("stuck")
		require.Contains(t, out, "shop refund "+payment+" 4900")
		status, out, says := s.command("stuck", "--ask", s.now(o.ID).Refunds[0].ID)
		require.Equal(t, 1, status)
		require.Empty(t, out)
		require.Contains(t, says, "changes nothing")
	})

	t.Run("RefusesWhatDoesNotWait", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		payment := s.paid().Payments[0].ID
		for _, id := range []string{payment, "pay_never", "'; DROP TABLE events; --", "\x00", "\xff", strings.Repeat("x", 10000)} {
			for _, flag := range []string{"--ask=", "--dismiss="} {
				status, out, says := s.command("stuck", flag+id)
				require.Equal(t, 1, status, id)
				require.Empty(t, out)
				require.Contains(t, says, "nothing of that id waits for a person")
			}
		}
	})
}

func TestRefund(t *testing.T) {
	t.Parallel()
	keyOf := func(t *testing.T, out string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)^key (terminal-\S+)$`).FindStringSubmatch(out)
		require.NotNil(t, found, out)
		return found[1]
	}

	t.Run("GivesBackAPartAndThenTheRest", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		o := s.paid()
		payment := o.Payments[0].ID
		status, out, _ := s.command("refund", payment, "1900")
		require.Equal(t, 0, status)
		require.Contains(t, out, `"status":"succeeded","amount":1900,"currency":"usd"`)
		require.Equal(t, int64(1900), s.now(o.ID).Payments[0].Refunded)

		// The same again under its key: the same refund.
		status, again, _ := s.command("refund", payment, "1900", "--key", keyOf(t, out))
		require.Equal(t, 0, status)
		require.Equal(t, out, again)
		require.Len(t, s.now(o.ID).Refunds, 1)

		status, _, says := s.command("refund", payment, "1901", "--key", keyOf(t, out))
		require.Equal(t, 1, status)
		require.Contains(t, says, "key")

		status, out, says = s.command("refund", payment, "3001")
		require.Equal(t, 1, status)
		require.Contains(t, out, "refund_not_possible")
		require.Contains(t, says, "nothing was given back")

		status, _, _ = s.command("refund", payment, "3000")
		require.Equal(t, 0, status)
		require.Equal(t, checkout.OrderRefunded, s.now(o.ID).Status)
	})

	t.Run("RefusesWhatItCannotMean", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		o := s.paid()
		payment := o.Payments[0].ID
		for name, row := range map[string]struct {
			args []string
			says string
		}{
			"an unknown payment":   {[]string{"pay_aaaaaaaaaaaaaaaaaaaaaaaa", "100"}, "not found"},
			"an id that is none":   {[]string{"'; DROP TABLE payments", "100"}, "not found"},
			"an order's id":        {[]string{o.ID, "100"}, "not found"},
			"an empty id":          {[]string{"", "100"}, "not found"},
			"bytes":                {[]string{"pay_\xff\x00", "100"}, "not found"},
			"no amount":            {[]string{payment}, "amount"},
			"nothing":              {[]string{payment, "0"}, "at least 1"},
			"less than nothing":    {[]string{payment, "--", "-100"}, "at least 1"},
			"too much to be money": {[]string{payment, "100000000"}, "amount"},
			"a decimal point":      {[]string{payment, "19.00"}, "amount"},
			"a word":               {[]string{payment, "all"}, "amount"},
			"a number too large":   {[]string{payment, "99999999999999999999"}, "amount"},
			"a key too long":       {[]string{payment, "100", "--key", strings.Repeat("k", 256)}, "key"},
			"a key that is bytes":  {[]string{payment, "100", "--key", "a\x00b"}, "key"},
			"a key in Cyrillic":    {[]string{payment, "100", "--key", "ключ"}, "key"},
		} {
			status, _, says := s.command(append([]string{"refund"}, row.args...)...)
			require.Equal(t, 1, status, name)
			require.Contains(t, says, row.says, name)
			require.Empty(t, s.now(o.ID).Refunds, name)
		}
		require.Zero(t, s.stripe.Counts().Requests["POST /v1/refunds"])
	})

	t.Run("WhoseReplyIsLostIsRepeatedUnderItsKeyAndMadeOnce", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		o := s.paid()
		payment := o.Payments[0].ID
		_, err := s.stripe.Add(stripesim.Rule{Method: http.MethodPost, Path: "/v1/refunds", Action: stripesim.Drop, At: stripesim.Answer})
		require.NoError(t, err)
		status, out, says := s.command("refund", payment, "1900")
		require.Equal(t, 1, status)
		require.Contains(t, says, "the outcome is not known yet")
		require.Contains(t, says, "--key "+keyOf(t, out))
		s.exec(`UPDATE idempotency_keys SET lease_until = clock_timestamp() WHERE status = 'in_progress'`)
		status, _, _ = s.command("refund", payment, "1900", "--key", keyOf(t, out))
		require.Equal(t, 0, status)
		require.Len(t, s.now(o.ID).Refunds, 1)
		require.Equal(t, int64(1900), s.now(o.ID).Payments[0].Refunded)
	})

	t.Run("ThatStripeTurnsAwayCanBeRepeated", func(t *testing.T) {
		t.Parallel()
		s := openShop(t)
		o := s.paid()
		_, err := s.stripe.Add(stripesim.Rule{
			Method: http.MethodPost, Path: "/v1/refunds", Action: stripesim.Fail,
			Failure: &stripesim.Failure{Status: 429, Code: "rate_limit"},
		})
		require.NoError(t, err)
		status, out, says := s.command("refund", o.Payments[0].ID, "1900")
		require.Equal(t, 1, status)
		require.Contains(t, says, "Stripe is busy")
		status, _, _ = s.command("refund", o.Payments[0].ID, "1900", "--key", keyOf(t, out))
		require.Equal(t, 0, status)
		require.Equal(t, int64(1900), s.now(o.ID).Payments[0].Refunded)
	})
}

// TestARefundWithoutAnAnswerIsRepeatedUnderItsKey: whatever is not known to have
// given nothing back may have given it, and another key would give it twice.
func TestARefundWithoutAnAnswerIsRepeatedUnderItsKey(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		says []string
	}{
		"the outcome is unknown":     {checkout.ErrOutcomeUnknown, []string{"--key k", "never without"}},
		"it is in progress":          {&idempotency.InProgressError{}, []string{"--key k", "never without"}},
		"a COMMIT in doubt":          {fmt.Errorf("recording: %w", idempotency.ErrCommitUnknown), []string{"--key k", "never without"}},
		"a claim that came and went": {&checkout.ConflictError{Err: idempotency.ErrClaimContended}, []string{"--key k", "never without"}},
		"no connection":              {idempotency.ErrOverloaded, []string{"--key k", "never without"}},
		"a database that is away":    {errors.New("reading the key: no route to host"), []string{"--key k", "never without", "no route to host"}},
		"Stripe is busy":             {checkout.ErrProviderBusy, []string{"nothing was given back", "--key k"}},
		"Stripe refused":             {checkout.ErrProviderRefused, []string{"nothing was given back", "--key k"}},
	} {
		for _, want := range row.says {
			require.ErrorContains(t, refundTrouble(row.err, "k"), want, name)
		}
	}
	for name, err := range map[string]error{
		"a bad amount": &checkout.InvalidError{Field: "amount"}, "no such payment": checkout.ErrNotFound, "another's key": idempotency.ErrKeyReused,
	} {
		require.NotContains(t, refundTrouble(err, "k").Error(), "--key", name)
	}
}

// TestCommandsRefuseABadStripeAndDatabase: an operator's mistake is one line,
// and nothing is started.
func TestCommandsRefuseABadStripeAndDatabase(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args []string
		says string
	}{
		"a base without a key":        {[]string{"--stripe-api-base", "http://127.0.0.1:1"}, "STRIPE_API_BASE"},
		"a live key elsewhere":        {[]string{"--stripe-secret-key", "sk_live_x", "--stripe-api-base", "http://127.0.0.1:1"}, "STRIPE_SECRET_KEY"},
		"a key that is none":          {[]string{"--stripe-secret-key", "hunter2"}, "STRIPE_SECRET_KEY"},
		"a database that is none":     {[]string{"--database-url", "mysql://a:hunter2@b/c"}, "DATABASE_URL"},
		"too few connections":         {[]string{"--db-max-conns", "1"}, "DB_MAX_CONNS"},
		"a database that is not here": {[]string{"--database-url", "postgres://a:hunter2@127.0.0.1:1/c", "--stripe-secret-key", "sk_test_local"}, "DATABASE_URL"},
	} {
		for _, command := range [][]string{{"stuck"}, {"refund", "pay_1", "100"}} {
			status, out, says := program(t, append(command, row.args...)...)
			require.Equal(t, 1, status, name)
			require.Empty(t, out)
			require.Contains(t, says, row.says, name)
			require.NotContains(t, says, "hunter2", name)
		}
	}
}
