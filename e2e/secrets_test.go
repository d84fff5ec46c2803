package e2e

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// leak is a kind of text that no row of the shop may hold.
type leak struct {
	what  string
	looks *regexp.Regexp
	is    func(text string) bool // nil: what looks so is so
}

var leaks = []leak{
	{what: "a client secret", looks: regexp.MustCompile(`_secret_\w+|client_secret`)},
	{what: "a key to Stripe or of the webhooks", looks: regexp.MustCompile(`\b[sr]k_(live|test)_\w+|\bwhsec_\w+`)},
	{what: "the secret of the sessions", looks: regexp.MustCompile(regexp.QuoteMeta(sessionSecret))},
	// What begins like a card's number, in one piece or in its usual groups, and
	// has its check digit. The digits behind a decimal point are no number.
	{
		what: "a card number", is: isCardNumber,
		looks: regexp.MustCompile(`(^|[^\w.])(4|5[1-5]|2[2-7]|3[47]|6[05])(\d{11,17}|\d{2,3}[ -]\d{4}[ -]\d{4}[ -]\d{4}|\d{2}[ -]\d{6}[ -]\d{5})\b`),
	},
	{what: "an e-mail address", looks: regexp.MustCompile(`[\w.+-]+@[\w-]+(\.[\w-]+)+`)},
	{what: "an address on the network", looks: regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)},
	{what: "a browser's name", looks: regexp.MustCompile(`Mozilla/|HeadlessChrome|Go-http-client`)},
}

// origin is the shop's or a bank's own address, which is nobody's.
var origin = regexp.MustCompile(`https?://[^/"\s]+`)

// isCardNumber is Luhn's check.
func isCardNumber(text string) bool {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
	if len(digits) < 13 || len(digits) > 19 {
		return false
	}
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// textColumns are the columns of every table in which a text can stand, and how
// to read them as one.
const textColumns = `
	SELECT c.table_name, c.column_name,
	       CASE c.data_type WHEN 'bytea' THEN format('encode(%1$I, ''escape'')', c.column_name) ELSE format('%1$I::text', c.column_name) END
	  FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
	 WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'
	   AND c.data_type IN ('text', 'bytea', 'json', 'jsonb', 'character varying', 'ARRAY', 'inet')`

// leaksIn reads every text in every table of a database, and returns what should
// not be there, as in "payments.charge: a card number".
func leaksIn(ctx context.Context, pool *pgxpool.Pool) (found []string, err error) {
	rows, _ := pool.Query(ctx, textColumns)
	var table, column, text string
	var names, reads []string
	if _, err := pgx.ForEachRow(rows, []any{&table, &column, &text}, func() error {
		names = append(names, table+"."+column)
		reads = append(reads, "SELECT "+text+" FROM "+pgx.Identifier{table}.Sanitize()+" WHERE "+pgx.Identifier{column}.Sanitize()+" IS NOT NULL")
		return nil
	}); err != nil {
		return nil, err
	}
	for i, read := range reads {
		rows, _ := pool.Query(ctx, read)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			for _, what := range leaksOf(text) {
				found = append(found, names[i]+": "+what)
			}
		}
	}
	return found, nil
}

// leaksOf names what should not stand in a text.
func leaksOf(text string) (found []string) {
	text = origin.ReplaceAllString(text, "")
	for _, l := range leaks {
		for _, match := range l.looks.FindAllString(text, -1) {
			if l.is == nil || l.is(match) {
				found = append(found, l.what)
				break
			}
		}
	}
	return found
}

// requireNoLeaks requires that nothing that was stored is a secret, a card's
// number or about a person.
func requireNoLeaks(t testing.TB, d *deployment) {
	t.Helper()
	d.withDatabase(t, func(ctx context.Context, pool *pgxpool.Pool) error {
		found, err := leaksIn(ctx, pool)
		require.Empty(t, found, "what no row may hold")
		return err
	})
}

// TestNoTableHoldsASecretOrPersonalData: after every kind of outcome. Every
// other deployment of these tests is scanned in the same way when it is closed.
func TestNoTableHoldsASecretOrPersonalData(t *testing.T) {
	t.Parallel()

	t.Run("AfterEveryOutcome", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		c := d.customer(t, d.open(t))
		requireNoLeaks(t, d)

		_, paid := c.buy("stripe-in-production")
		require.Equal(t, http.StatusCreated, c.post(refundsOf(paid), newKey(), refundBody(paid.Amount)).status)
		o := c.place("idempotency-end-to-end")
		c.pay(o, o.PaymentKey, "4242424242424242").problem(t, http.StatusBadRequest, "invalid_request")
		declined := c.pay(o, o.PaymentKey, "pm_card_chargeDeclined").problem(t, http.StatusPaymentRequired, "card_declined")
		asked := c.pay(o, declined.PaymentKey, "pm_card_authenticationRequired")
		require.Equal(t, http.StatusAccepted, asked.status, asked.body)
		require.True(t, c.pay(o, declined.PaymentKey, "pm_card_authenticationRequired").replayed())
		p := decoded[payment](t, asked)
		held := d.stripe.hold(t, "execution")
		other := c.place("proof-by-exhaustion")
		first := later(func() answer { return c.pay(other, other.PaymentKey, "pm_card_visa") })
		held.reached(t)
		requireNoLeaks(t, d) // while parameters are frozen and a bank is waiting
		held.release(t)
		c.paid(<-first)
		d.stripe.call(t, http.MethodPost, "/_sim/payment_intents/"+p.PaymentIntent+"/finish?outcome=succeeded", nil, nil)
		require.Equal(t, http.StatusSeeOther, c.get("/orders/"+o.ID+"/return").status)
		requireNoLeaks(t, d)
	})

	t.Run("AndTheScanFindsWhatIsPlanted", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		require.NotZero(t, d.execute(t, `
			INSERT INTO idempotency_keys (scope, key, operation, request_hash, status, owner, response_status, response_type, response_body, completed_at)
			VALUES ('acct_1', 'alice@example.com', 'POST /orders', sha256('x'), 'completed', 'me', 201, 'application/json',
			        '{"next_action":"https://bank.example/?client_secret=pi_1_secret_x"}', now())`))
		require.NotZero(t, d.execute(t, `
			INSERT INTO key_history (scope, key, attempt, owner, instance, what, detail)
			VALUES ('acct_1', 'k', 1, 'me', 'shop at 203.0.113.7', 'claimed', '{"card":"4242 4242 4242 4242"}')`))
		d.withDatabase(t, func(ctx context.Context, pool *pgxpool.Pool) error {
			found, err := leaksIn(ctx, pool)
			require.ElementsMatch(t, []string{
				"idempotency_keys.key: an e-mail address", "idempotency_keys.response_body: a client secret",
				"key_history.instance: an address on the network", "key_history.detail: a card number",
			}, found)
			return err
		})
		for text, want := range map[string][]string{
			"5555-5555-5555-4444":          {"a card number"},
			"378282246310005":              {"a card number"},
			"3782 822463 10005":            {"a card number"},
			`{"card":4242424242424242}`:    {"a card number"},
			`{"took": 1.4242424242424242}`: nil, // a fraction of a millisecond
			"4242424242424241":             nil, // no check digit
			"1764575000000000":             nil, // a time
			"sk_test_local":                {"a key to Stripe or of the webhooks"},
			"Mozilla/5.0 (X11; Linux)":     {"a browser's name"},
			"http://127.0.0.1:8080/orders": nil, // the shop's own
		} {
			require.Equal(t, want, leaksOf(text), text)
		}
	})
}
