package stripesim_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"payonce/checkout/stripesim"
)

// BenchmarkCreateAndConfirm is what one purchase costs at the local Stripe, in memory and with each line synced to disk;
// parallel calls share an fsync.
func BenchmarkCreateAndConfirm(b *testing.B) {
	for name, journal := range map[string]string{"memory": "", "journal": filepath.Join(b.TempDir(), "journal")} {
		b.Run(name, func(b *testing.B) {
			sim, err := stripesim.New(stripesim.Config{Journal: journal})
			if err != nil {
				b.Fatal(err)
			}
			server := httptest.NewServer(sim)
			defer func() {
				server.Close()
				if err := sim.Close(); err != nil {
					b.Fatal(err)
				}
			}()
			caller := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			post := func(path, body string) string {
				request, err := http.NewRequest(http.MethodPost, server.URL+path, strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				request.Header.Set("Authorization", "Bearer sk_test_local")
				request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				answer, err := caller.Do(request)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = answer.Body.Close() }()
				raw, err := io.ReadAll(answer.Body)
				if err != nil || answer.StatusCode != http.StatusOK {
					b.Fatal(answer.StatusCode, err)
				}
				return string(raw)
			}
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					pi := post("/v1/payment_intents", "amount=4900&currency=usd&payment_method_types[]=card")
					_, rest, _ := strings.Cut(pi, `"id": "`)
					id, _, _ := strings.Cut(rest, `"`)
					post("/v1/payment_intents/"+id+"/confirm", "payment_method=pm_card_visa")
				}
			})
		})
	}
}
