package web_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/checkout/stripepay"
	"payonce/checkout/stripesim"
	"payonce/idempotency"
	"payonce/migrations/dbtest"
	"payonce/web"
)

// BenchmarkReplay measures the answer to a duplicate over HTTP against the
// floor: an echo handler that does one indexed read. Both are asked in turn, on
// connections of their own, in the same run.
func BenchmarkReplay(b *testing.B) {
	pool := dbtest.New(b)
	stripe, err := stripesim.New(stripesim.Config{})
	require.NoError(b, err)
	bank := httptest.NewServer(stripe)
	b.Cleanup(func() { _ = stripe.Close(); bank.Close() })
	provider, err := stripepay.New(stripepay.Config{SecretKey: "sk_test_local", Base: bank.URL})
	require.NoError(b, err)
	ledger, err := idempotency.New(idempotency.Config{Pool: pool, Instance: "bench"})
	require.NoError(b, err)
	b.Cleanup(func() { _ = ledger.Close(context.Background()) })
	service, err := checkout.New(checkout.Config{Pool: pool, Ledger: ledger, Provider: provider, PublicURL: publicURL, Methods: checkout.TestMethods()})
	require.NoError(b, err)
	c := config(service)
	c.Ledger, c.Log = ledger, slog.New(slog.DiscardHandler)
	server, err := web.New(c)
	require.NoError(b, err)
	shop := httptest.NewServer(server)
	b.Cleanup(shop.Close)
	var account string
	floor := httptest.NewServer(oneRead(pool, &account))
	b.Cleanup(floor.Close)

	client := &http.Client{}
	send := func(r *http.Request) (int, http.Header, []byte) {
		answer, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			b.Fatal(err)
		}
		return answer.StatusCode, answer.Header, body
	}
	first, err := http.NewRequest(http.MethodGet, shop.URL+"/", nil)
	require.NoError(b, err)
	_, header, _ := send(first)
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	request := func(base, path, key, body string) *http.Request {
		r, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Cookie": {cookie}, "Idempotency-Key": {`"` + key + `"`},
		}
		return r
	}
	status, _, body := send(request(shop.URL, "/orders", "order", `{"course":"idempotency-end-to-end"}`))
	require.Equal(b, http.StatusCreated, status, string(body))
	var order checkout.OrderView
	require.NoError(b, json.Unmarshal(body, &order))
	require.NoError(b, pool.QueryRow(b.Context(), `SELECT account FROM orders`).Scan(&account))
	replay := func(base string) (time.Duration, http.Header) {
		r := request(base, "/orders/"+order.ID+"/payments", order.PaymentKey, `{"payment_method":"pm_card_visa"}`)
		began := time.Now()
		status, header, body := send(r)
		if status != http.StatusCreated {
			b.Fatal(status, string(body))
		}
		return time.Since(began), header
	}
	replay(shop.URL)
	_, header = replay(shop.URL)
	require.Equal(b, "true", header.Get("Idempotent-Replayed"))
	replay(floor.URL)

	var replays, reads []time.Duration
	for b.Loop() {
		took, _ := replay(shop.URL)
		replays = append(replays, took)
		took, _ = replay(floor.URL)
		reads = append(reads, took)
	}
	slices.Sort(replays)
	slices.Sort(reads)
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
	b.ReportMetric(float64(replays[len(replays)/2].Nanoseconds()), "replay-ns/op")
	b.ReportMetric(float64(reads[len(reads)/2].Nanoseconds()), "floor-ns/op")
	b.ReportMetric(float64(reads[len(reads)/2])/float64(replays[len(replays)/2]), "ratio")
}

// oneRead answers with the stored answer of a key, after one indexed read.
func oneRead(pool *pgxpool.Pool, account *string) http.Handler {
	e := echo.New()
	e.POST("/orders/:id/payments", func(c echo.Context) error {
		var body []byte
		key := strings.Trim(c.Request().Header.Get("Idempotency-Key"), `"`)
		err := pool.QueryRow(c.Request().Context(),
			`SELECT response_body FROM idempotency_keys WHERE scope = $1 AND key = $2`, *account, key).Scan(&body)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusCreated, "application/json", body)
	})
	return e
}
