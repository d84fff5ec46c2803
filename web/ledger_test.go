package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/idempotency"
	"payonce/web"
)

// noKeys is a ledger in which nothing was ever claimed.
type noKeys struct{}

func (noKeys) KeysOf(context.Context, int, ...string) ([]idempotency.KeyState, error) {
	return nil, nil
}

func (noKeys) History(context.Context, string, ...idempotency.Key) ([]idempotency.Entry, error) {
	return nil, nil
}

func (noKeys) HistoryOf(context.Context, []idempotency.KeyState) ([]idempotency.Entry, error) {
	return nil, nil
}

func (noKeys) Marks(context.Context, ...string) (map[string]string, error) {
	return map[string]string{}, nil
}

// ledgerAnswer is GET /ledger as a program reads it.
type ledgerAnswer struct {
	Keys []struct {
		Key           string   `json:"key"`
		Operation     string   `json:"operation"`
		Order         string   `json:"order"`
		Fingerprint   string   `json:"fingerprint"`
		Status        string   `json:"status"`
		NeedsPerson   bool     `json:"needs_person"`
		RecoveryPoint string   `json:"recovery_point"`
		Attempt       int      `json:"attempt"`
		Takeovers     int      `json:"takeovers"`
		Owner         string   `json:"owner"`
		Instance      string   `json:"instance"`
		LeaseLeft     *float64 `json:"lease_left"`
		Answer        *struct {
			Status int    `json:"status"`
			Bytes  int    `json:"bytes"`
			Code   string `json:"code"`
			Charge string `json:"charge"`
		} `json:"answer"`
		Replays     int        `json:"replays"`
		CreatedAt   time.Time  `json:"created_at"`
		CompletedAt *time.Time `json:"completed_at"`
		History     []any      `json:"history"`
	} `json:"keys"`
	Tally  map[string]int `json:"tally"`
	More   bool           `json:"more"`
	ReadAt *time.Time     `json:"read_at"`
}

func (s *realShop) ledger() (l ledgerAnswer) {
	s.t.Helper()
	s.send(get("/ledger")).decode(&l)
	return l
}

// replaysOf waits until n replays of an order's keys are in the history, where
// they come in batches.
func (s *realShop) replaysOf(order string, n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		found := 0
		for _, k := range s.ledger().Keys {
			if k.Order == order {
				found += k.Replays
			}
		}
		return found == n
	}, 30*time.Second, 20*time.Millisecond)
}

// drawing cuts the swimlanes out of a page.
func drawing(t *testing.T, page string) (table string, lanes []string) {
	t.Helper()
	table = regexp.MustCompile(`(?s)<table class="lanes.*?</table>`).FindString(page)
	require.NotEmpty(t, table, page)
	body := regexp.MustCompile(`(?s)<tbody>(.*)</tbody>`).FindStringSubmatch(table)[1]
	return table, regexp.MustCompile(`(?s)<tr.*?</tr>`).FindAllString(body, -1)
}

// TestWhatHappened: the drawing on an order's page is what the ledger's rows
// say, for eight copies, a decline, a retry and a takeover from an owner that
// was killed.
func TestWhatHappened(t *testing.T) {
	t.Parallel()

	t.Run("EightCopies", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		s.eightCopies(order.ID, order.PaymentKey)
		s.replaysOf(order.ID, 7)
		require.Equal(t, 1, s.charges(order.ID))

		page := squeezed(s.send(get("/orders/"+order.ID, fromBrowser)).page())
		table, lanes := drawing(t, page)
		require.Len(t, lanes, 8)
		require.Equal(t, 1, strings.Count(table, `href="#charge"`), "one dot")
		require.Contains(t, lanes[0], `href="#charge"`)
		require.Contains(t, lanes[0], "intent created at")
		require.Contains(t, lanes[0], "answered 201")
		for _, lane := range lanes[1:] {
			require.Contains(t, lane, "replayed at")
			require.Contains(t, lane, `href="#none"`)
		}
		require.Regexp(t, `(This payment claimed|\w+ copies of this payment reached the shop)`, page)
		require.Contains(t, page, "claimed the key, called Stripe, which charged the card, and recorded the answer.")
		require.Regexp(t, `<dt>Replays</dt> ?<dd><b class="figures">7</b> the same \d+ bytes, the last one`, page)
	})

	t.Run("ADecline", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		got := s.send(post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_card_chargeDeclined"}`, key(order.PaymentKey)))
		require.Equal(t, 402, got.status)
		page := squeezed(s.send(get("/orders/"+order.ID, fromBrowser)).page())
		table, lanes := drawing(t, page)
		require.Len(t, lanes, 1)
		require.NotContains(t, table, `href="#charge"`)
		require.Contains(t, lanes[0], "answered 402")
		require.Contains(t, page, "This payment claimed the key, called Stripe, which charged nothing, and recorded that answer. Nobody has been given it again yet.")
	})

	t.Run("ARetry", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		pay := post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_sim_rate_limited"}`, key(order.PaymentKey))
		require.Equal(t, 503, s.send(pay).status)
		page := squeezed(s.send(get("/orders/"+order.ID, fromBrowser)).page())
		require.Contains(t, page, "This payment claimed the key, but Stripe took nothing: the key is free to be tried again.")
		pay = post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_sim_rate_limited"}`, key(order.PaymentKey))
		require.Equal(t, 201, s.send(pay).status)
		page = squeezed(s.send(get("/orders/"+order.ID, fromBrowser)).page())
		table, lanes := drawing(t, page)
		require.Len(t, lanes, 2)
		require.Contains(t, lanes[0], "retryable")
		require.Equal(t, 1, strings.Count(table, `href="#charge"`))
		require.Contains(t, page, "The same key was then tried again: a second owner claimed it")
	})

	t.Run("AKilledOwner", func(t *testing.T) {
		t.Parallel()
		s := openReal(t)
		order := s.ordered(slug)
		s.killed(order.ID, order.PaymentKey)
		asking := squeezed(s.send(get("/orders/"+order.ID, fromBrowser)).page())
		_, lanes := drawing(t, asking)
		require.Len(t, lanes, 1)
		require.Contains(t, lanes[0], "at work", "nobody knows that it is dead")
		require.Contains(t, asking, "has not ended yet")
		s.lapse()
		require.Equal(t, 201, s.send(post("/orders/"+order.ID+"/payments", `{"payment_method":"pm_sim_reply_lost"}`, key(order.PaymentKey))).status)

		page := squeezed(s.send(get("/orders/"+order.ID, fromBrowser)).page())
		table, lanes := drawing(t, page)
		require.Len(t, lanes, 2)
		require.Contains(t, lanes[0], `<span class="wrong">killed</span>`)
		require.Contains(t, lanes[0], "no end written")
		require.Contains(t, lanes[0], `class="lease"`)
		require.NotContains(t, table, `href="#lapse"`, "its lease was cut short by hand: when, the history does not say")
		require.NotContains(t, lanes[0], `href="#charge"`)
		require.Contains(t, lanes[1], `href="#charge"`)
		require.Contains(t, page, "The first owner claimed the key, and wrote no end: it was killed, or cut off. When its lease had lapsed, a second owner took over")
	})

	t.Run("AHistoryThatCannotBeReadDoesNotTakeThePageWithIt", func(t *testing.T) {
		t.Parallel()
		s := open(t, func(c *web.Config) { c.Ledger = unreadable{} })
		s.fake.orders[someOrder] = orderPaid()
		page := s.send(get("/orders/"+someOrder, fromBrowser))
		require.Equal(t, 200, page.status)
		require.Contains(t, page.page(), "Charged once")
		require.NotContains(t, page.page(), "What happened")
		require.Equal(t, 500, s.send(get("/ledger")).status)
		require.Contains(t, s.log.String(), "history out of reach")
		require.NotContains(t, string(s.send(get("/ledger")).body), "out of reach")
	})
}

// unreadable is a ledger on a database that is away.
type unreadable struct{ noKeys }

func (unreadable) KeysOf(context.Context, int, ...string) ([]idempotency.KeyState, error) {
	return nil, errors.New("ledger out of reach")
}

func (unreadable) History(context.Context, string, ...idempotency.Key) ([]idempotency.Entry, error) {
	return nil, errors.New("history out of reach")
}

// eightCopies sends one payment eight times at once.
func (s *realShop) eightCopies(order, paymentKey string) {
	s.t.Helper()
	var all sync.WaitGroup
	start, statuses := make(chan struct{}), make(chan int, 8)
	for range 8 {
		r := post("/orders/"+order+"/payments", `{"payment_method":"pm_sim_slow"}`, key(paymentKey))
		r.AddCookie(s.cookie)
		all.Go(func() {
			<-start
			w := httptest.NewRecorder()
			s.server.ServeHTTP(w, r)
			statuses <- w.Code
		})
	}
	close(start)
	all.Wait()
	for range 8 {
		require.Equal(s.t, 201, <-statuses)
	}
}

// killed leaves a payment as an owner leaves it that was killed after its card
// was charged: claimed, its intent stored, and no end written.
func (s *realShop) killed(order, paymentKey string) {
	s.t.Helper()
	got := s.send(post("/orders/"+order+"/payments", `{"payment_method":"pm_sim_reply_lost"}`, key(paymentKey)))
	require.Equal(s.t, 503, got.status)
	_, err := s.pool.Exec(s.t.Context(), `DELETE FROM key_history WHERE what = 'unknown'`)
	require.NoError(s.t, err)
	_, err = s.pool.Exec(s.t.Context(), `
		UPDATE idempotency_keys SET recovery_point = 'intent_created', lease_until = clock_timestamp() + interval '1 minute'
		 WHERE status = 'in_progress'`)
	require.NoError(s.t, err)
}

// TestLedger: the page and its JSON say of each key what its row says, and tell
// nothing that could be used.
func TestLedger(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	require.Empty(t, s.ledger().Keys)
	require.Contains(t, s.send(get("/ledger", fromBrowser)).page(), "No keys yet.")

	declined := s.ordered(slug)
	payments := "/orders/" + declined.ID + "/payments"
	require.Equal(t, 402, s.send(post(payments, `{"payment_method":"pm_card_chargeDeclinedInsufficientFunds"}`, key(declined.PaymentKey))).status)
	next := s.order(declined.ID).PaymentKey
	require.Equal(t, 201, s.send(post(payments, withVisa, key(next))).status)
	require.Equal(t, 201, s.send(post(payments, withVisa, key(next))).status)
	payment := s.order(declined.ID).Payments[1].ID
	require.Equal(t, 201, s.send(post("/payments/"+payment+"/refunds", `{"amount":900}`, key("refund-0123456789abcdef"))).status)

	retryable := s.ordered("stripe-in-production")
	require.Equal(t, 503, s.send(post("/orders/"+retryable.ID+"/payments", `{"payment_method":"pm_sim_rate_limited"}`, key(retryable.PaymentKey))).status)
	killed := s.ordered("proof-by-exhaustion")
	s.killed(killed.ID, killed.PaymentKey)
	free := s.ordered("why-select-cannot-answer")
	s.replaysOf(declined.ID, 1)

	l := s.ledger()
	require.Len(t, l.Keys, 9)
	require.Equal(t, map[string]int{
		"keys": 9, "completed": 7, "in_progress": 1, "failed_retryable": 1, "need_person": 0, "replays": 1, "charged_twice": 0,
	}, l.Tally)
	byOrder := map[string][]string{}
	for _, k := range l.Keys {
		answer := ""
		if k.Answer != nil {
			answer = http.StatusText(k.Answer.Status)
			require.Positive(t, k.Answer.Bytes)
		}
		byOrder[k.Order] = append(byOrder[k.Order], k.Status+" "+answer)
		require.NotEmpty(t, k.History)
		require.Equal(t, k.Status == "in_progress", k.LeaseLeft != nil)
	}
	require.Equal(t, map[string][]string{
		declined.ID:  {"completed Created", "completed Created", "completed Payment Required", "completed Created"},
		retryable.ID: {"failed_retryable ", "completed Created"},
		killed.ID:    {"in_progress ", "completed Created"},
		free.ID:      {"completed Created"},
	}, byOrder, "a refund belongs to the order of its payment")

	s.lapse()
	page := squeezed(s.send(get("/ledger", fromBrowser)).page())
	require.Equal(t, 4, strings.Count(page, `class="group"`))
	for _, words := range []string{
		"Charged once, $9.00 refunded", "Not known yet", "Not charged", "Four keys", "insufficient_funds", "failed_retryable",
		"lapsed 0 s ago", "pay:&lt;payment&gt;:&lt;generation&gt;", "refund:&lt;refund&gt;",
		`data-events="/ledger/events"`, "ledger.js",
	} {
		require.Contains(t, page, words)
	}
	for _, secret := range []string{declined.PaymentKey, next, killed.PaymentKey, "refund-0123456789abcdef", s.cookie.Value} {
		require.NotContains(t, page, secret)
	}
	var account string
	require.NoError(t, s.pool.QueryRow(t.Context(), `SELECT DISTINCT scope FROM idempotency_keys`).Scan(&account))
	require.NotContains(t, page, account)

	// Another customer sees nothing of it.
	stranger := s.newCustomer()
	s.cookie = stranger
	require.Empty(t, s.ledger().Keys)
}

func TestLedgerNeedsAPerson(t *testing.T) {
	t.Parallel()
	s := openReal(t)
	order := s.ordered(slug)
	s.killed(order.ID, order.PaymentKey)
	_, err := s.pool.Exec(t.Context(), `UPDATE idempotency_keys SET completer_tries = 1000 WHERE status = 'in_progress'`)
	require.NoError(t, err)
	s.lapse()
	require.Equal(t, 1, s.ledger().Tally["need_person"])
	require.Contains(t, s.send(get("/ledger", fromBrowser)).page(), "needs a person")

	// The order's page says the same, and does not promise to go on asking.
	_, err = s.pool.Exec(t.Context(), `UPDATE payments SET updated_at = updated_at - interval '3 minutes'`)
	require.NoError(t, err)
	page := squeezed(s.send(get("/orders/"+order.ID, fromBrowser)).page())
	require.Contains(t, page, "We could not confirm this payment yet. Do not pay again.")
	require.Contains(t, page, "A person looks at it now")
	require.Contains(t, page, s.order(order.ID).Payments[0].ID)
	require.Contains(t, page, pressedAgain)
	require.NotContains(t, page, "We keep asking")
	require.NotContains(t, page, payButton)
}

// TestLedgerCountsTwoChargesOfOneOrder: the figure can be something else than
// zero. Two answers that name two charges of one order are two charges.
func TestLedgerCountsTwoChargesOfOneOrder(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *web.Config) { c.Ledger = twice{} })
	got := s.send(get("/ledger"))
	require.Contains(t, string(got.body), `"charged_twice":1`)
	require.Contains(t, s.send(get("/ledger", fromBrowser)).page(), `<dd class="wrong">1</dd>`)
}

type twice struct{ noKeys }

func (twice) KeysOf(_ context.Context, _ int, scopes ...string) (keys []idempotency.KeyState, err error) {
	for _, charge := range []string{"ch_1", "ch_2", "ch_2"} {
		keys = append(keys, idempotency.KeyState{
			Scope: scopes[0], Key: idempotency.Key("key_of_" + charge), Operation: "POST /orders/" + someOrder + "/payments",
			Status: idempotency.Completed, Attempt: 1, RecoveryPoint: "called",
			Response: idempotency.Response{Status: 201, Type: "application/json", Body: []byte(`{"charge":"` + charge + `"}`)},
		})
	}
	return keys, nil
}
