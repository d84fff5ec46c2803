package web_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/web"
)

// published is the policy as a program reads it.
type published struct {
	Exclusion struct {
		Wait      float64 `json:"wait_seconds"`
		Lease     float64 `json:"lease_seconds"`
		Provider  float64 `json:"provider_timeout_seconds"`
		Completer float64 `json:"completer_interval_seconds"`
	}
	Memory struct {
		Retention float64 `json:"retention_seconds"`
		Resend    float64 `json:"resend_window_seconds"`
		Expiry    float64 `json:"order_expiry_seconds"`
		Action    float64 `json:"action_timeout_seconds"`
		Refund    float64 `json:"refund_window_seconds"`
		Events    float64 `json:"event_retention_seconds"`
		Header    string  `json:"replay_header"`
	}
	Identity struct {
		Header     string
		FormField  string `json:"form_field"`
		KeyMin     int    `json:"key_min_length"`
		KeyMax     int    `json:"key_max_length"`
		Scope      string
		Operations []struct {
			Operation, Shape string
			Fields           []string
			OneOf            bool `json:"one_of"`
		}
	}
	Answers []struct {
		Code, Title, Detail string
		Status              int
		Stored              bool
		SafeNewKey          bool `json:"safe_new_key"`
		RetryAfter          bool `json:"retry_after"`
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *web.Config) {
		c.Policy.Retention, c.Policy.Lease, c.Policy.Wait = 25*time.Hour, 90*time.Second, 1500*time.Millisecond
		c.Policy.CompleterInterval, c.Policy.ActionTimeout = 7*time.Second, 11*time.Minute
	})
	var p published
	s.send(get("/docs/idempotency")).decode(&p)
	page := s.send(get("/docs/idempotency", fromBrowser)).page()

	t.Run("IsOfTheFiguresInForce", func(t *testing.T) {
		t.Parallel()
		require.InDelta(t, 25*3600, p.Memory.Retention, 0)
		require.InDelta(t, 90, p.Exclusion.Lease, 0)
		require.InDelta(t, 1.5, p.Exclusion.Wait, 0)
		require.InDelta(t, 15, p.Exclusion.Provider, 0)
		require.InDelta(t, 7, p.Exclusion.Completer, 0)
		require.InDelta(t, 11*60, p.Memory.Action, 0)
		require.InDelta(t, 336*3600, p.Memory.Refund, 0)
		require.InDelta(t, 1080*3600, p.Memory.Events, 0)
		for _, want := range []string{
			"25 hours", "90 seconds", "1.5s", "15 seconds", "15 minutes", "20 hours", "7 seconds", "11 minutes", "336 hours", "1080 hours",
		} {
			require.Contains(t, page, want)
		}
	})

	t.Run("SaysNothingOfACompleterThatDoesNotRun", func(t *testing.T) {
		t.Parallel()
		s := open(t, func(c *web.Config) { c.Policy.CompleterInterval = 0 })
		page := s.send(get("/docs/idempotency", fromBrowser)).page()
		require.NotContains(t, page, "looked for every")
		require.NotContains(t, page, "takes its key over")
	})

	t.Run("HasThreeQuestions", func(t *testing.T) {
		t.Parallel()
		for _, heading := range []string{"exclusion", "memory", "identity"} {
			require.Contains(t, page, `id="`+heading+`"`)
		}
	})

	t.Run("HasAnAnchorForEveryCode", func(t *testing.T) {
		t.Parallel()
		for _, d := range checkout.Definitions() {
			require.Contains(t, page, `id="`+d.Code+`"`)
			require.Contains(t, checkout.NewProblem(d.Code).Type, "/docs/idempotency#"+d.Code)
		}
		// Where the problem of any code of Stripe's points to.
		require.Contains(t, page, `id="`+regexp.MustCompile(`#(.*)`).FindStringSubmatch(checkout.NewProblem("expired_card").Type)[1]+`"`)
	})

	t.Run("SaysWhatTheTableSays", func(t *testing.T) {
		t.Parallel()
		rows := p.Answers[len(p.Answers)-len(checkout.Definitions()):]
		for i, d := range checkout.Definitions() {
			require.Equal(t, d.Code, rows[i].Code)
			require.Equal(t, d.Status, rows[i].Status, d.Code)
			require.Equal(t, d.Stored, rows[i].Stored, d.Code)
			require.Equal(t, d.SafeNewKey, rows[i].SafeNewKey, d.Code)
			require.Equal(t, d.Detail, rows[i].Detail, d.Code)
		}
	})

	t.Run("SaysWhichAnswersComeWithRetryAfter", func(t *testing.T) {
		t.Parallel()
		says := map[string]bool{}
		for _, a := range p.Answers {
			says[a.Code] = a.RetryAfter
		}
		for name, row := range sentinels {
			s := open(t)
			s.fake.fails(row.err)
			got := s.send(post(payments, withVisa))
			require.Equal(t, says[row.code], got.header.Get("Retry-After") != "", name)
		}
	})

	t.Run("ListsWhatTakesAKey", func(t *testing.T) {
		t.Parallel()
		fields := map[string][]string{}
		for _, o := range p.Identity.Operations {
			fields[o.Operation] = o.Fields
		}
		require.Equal(t, map[string][]string{
			"POST /orders":                {"course"},
			"POST /orders/{id}/payments":  {"payment_method", "confirmation_token"},
			"POST /payments/{id}/refunds": {"amount"},
		}, fields)
		require.Equal(t, 255, p.Identity.KeyMax)
		require.Equal(t, "Idempotency-Key", p.Identity.Header)
	})
}
