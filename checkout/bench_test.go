package checkout_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/idempotency"
	"payonce/migrations/dbtest"
)

// slowProvider charges after a while, and does nothing else.
type slowProvider struct {
	checkout.Provider
	takes time.Duration
	n     atomic.Int64

	mu      sync.Mutex
	intents map[string]checkout.Intent
}

func (p *slowProvider) CreateIntent(_ context.Context, c checkout.IntentParams) (checkout.Intent, error) {
	in := checkout.Intent{
		ID: fmt.Sprintf("pi_%d", p.n.Add(1)), Status: checkout.IntentRequiresPaymentMethod, Money: c.Money, Account: c.Account, Order: c.Order,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intents[in.ID] = in
	return in, nil
}

func (p *slowProvider) ConfirmIntent(ctx context.Context, c checkout.ConfirmParams) (checkout.Intent, error) {
	select {
	case <-time.After(p.takes):
	case <-ctx.Done():
		return checkout.Intent{}, &checkout.ProviderError{Err: ctx.Err()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.intents[c.Intent]
	in.Status, in.Charge = checkout.IntentSucceeded, "ch"+in.ID[2:]
	return in, nil
}

// BenchmarkSlowProvider pays five hundred orders at once on four connections,
// while the provider takes two seconds for each: no connection is held while it
// does. The ratio is of the provider's time to the whole.
func BenchmarkSlowProvider(b *testing.B) {
	const orders, takes = 500, 2 * time.Second
	pool := dbtest.New(b, dbtest.MaxConns(4))
	ledger, err := idempotency.New(idempotency.Config{Pool: pool, Instance: "bench"})
	require.NoError(b, err)
	b.Cleanup(func() { _ = ledger.Close(context.Background()) })
	provider := &slowProvider{takes: takes, intents: map[string]checkout.Intent{}}
	service, err := checkout.New(checkout.Config{
		Pool: pool, Ledger: ledger, Provider: provider, PublicURL: "http://shop.test", Methods: methods, ProviderTimeout: 10 * time.Second,
	})
	require.NoError(b, err)
	var took time.Duration
	for round := 0; b.Loop(); round++ {
		type placed struct{ account, id, key string }
		all := make([]placed, orders)
		for i := range all {
			all[i].account = fmt.Sprintf("acct_%d_%d", round, i)
			answer, err := service.PlaceOrder(b.Context(), checkout.OrderRequest{Account: all[i].account, Key: "order", Course: course})
			require.NoError(b, err)
			o := decode[checkout.OrderView](b, answer)
			all[i].id, all[i].key = o.ID, o.PaymentKey
		}
		var buyers sync.WaitGroup
		began := time.Now()
		for _, o := range all {
			buyers.Go(func() {
				answer, err := service.Pay(b.Context(), checkout.PaymentRequest{
					Account: o.account, Key: idempotency.Key(o.key), Order: o.id, PaymentMethod: visa,
				})
				if err != nil || answer.Status != 201 {
					b.Error(answer.Status, err)
				}
			})
		}
		buyers.Wait()
		took += time.Since(began)
	}
	each := took / time.Duration(b.N)
	b.ReportMetric(0, "ns/op") // with the placing of the orders, which is not measured
	b.ReportMetric(each.Seconds(), "s/500-checkouts")
	b.ReportMetric(takes.Seconds()/each.Seconds(), "ratio")
}
