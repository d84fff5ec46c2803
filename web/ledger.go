package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/idempotency"
)

const (
	ledgerPath       = "/ledger"
	ledgerEventsPath = "/ledger/events"
)

// ledgerKeys is how many keys of an account are shown.
const ledgerKeys = 100

// Ledger is what the pages read about keys. *idempotency.Ledger is the real one,
// and the contract of each method is there.
type Ledger interface {
	KeysOf(ctx context.Context, limit int, scopes ...string) ([]idempotency.KeyState, error)
	History(ctx context.Context, scope string, keys ...idempotency.Key) ([]idempotency.Entry, error)
	HistoryOf(ctx context.Context, keys []idempotency.KeyState) ([]idempotency.Entry, error)
	Marks(ctx context.Context, scopes ...string) (map[string]string, error)
}

// book is what the ledger and the checkout say of one account's keys.
type book struct {
	keys    []idempotency.KeyState // newest first
	history map[idempotency.Key][]idempotency.Entry
	orders  map[string]checkout.Order
	// payments gives the order of a payment.
	payments map[string]string
}

// books reads the books of some accounts, in three round trips for all of them.
func (s *Server) books(ctx context.Context, accounts ...string) (map[string]*book, error) {
	all := make(map[string]*book, len(accounts))
	for _, account := range accounts {
		all[account] = &book{history: map[idempotency.Key][]idempotency.Entry{}, orders: map[string]checkout.Order{}, payments: map[string]string{}}
	}
	keys, err := s.cfg.Ledger.KeysOf(ctx, ledgerKeys, accounts...)
	if err != nil {
		return nil, err
	}
	history, err := s.cfg.Ledger.HistoryOf(ctx, keys)
	if err != nil {
		return nil, err
	}
	orders, err := s.cfg.Service.OrdersOf(ctx, accounts...)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if b := all[k.Scope]; b != nil {
			b.keys = append(b.keys, k)
		}
	}
	for _, e := range history {
		if b := all[e.Scope]; b != nil {
			b.history[e.Key] = append(b.history[e.Key], e)
		}
	}
	for _, o := range orders {
		if b := all[o.Account]; b != nil {
			b.orders[o.ID] = o
			for _, p := range o.Payments {
				b.payments[p.ID] = o.ID
			}
		}
	}
	return all, nil
}

// ledger answers GET /ledger.
func (s *Server) ledger(c echo.Context) error {
	account := visitOf(c).account
	all, err := s.books(c.Request().Context(), account)
	if err != nil {
		return err
	}
	b := all[account]
	if wantsHTML(c) {
		return s.ledgerPage(c, b)
	}
	return s.sendJSON(c, b.view())
}

// storedAnswer holds what is read of a stored answer, whatever it answers.
type storedAnswer struct {
	ID    string `json:"id"`
	Order string `json:"order"`
	Code  string `json:"code"`
	// Reason is the bank's, behind a code.
	Reason string `json:"decline_code"`
	Charge string `json:"charge"`
}

func readAnswer(k idempotency.KeyState) (a storedAnswer) {
	if k.Response.Status != 0 {
		_ = json.Unmarshal(k.Response.Body, &a) // what it does not say stays empty
	}
	return a
}

// orderOf is the order that a key is about: the one in its path, that of the
// payment in its path, or the one that its answer names. It is empty if none is
// known.
func (b *book) orderOf(k idempotency.KeyState) string {
	parts := strings.Split(k.Operation, "/")
	if len(parts) == 4 {
		switch parts[1] {
		case "orders":
			return parts[2]
		case "payments":
			if order, known := b.payments[parts[2]]; known {
				return order
			}
		}
	}
	a := readAnswer(k)
	if a.Order != "" {
		return a.Order
	}
	if k.Operation == "POST /orders" {
		return a.ID
	}
	return ""
}

// shortKey shows both ends of a key: enough to find it again, too little to
// send it.
func shortKey(key string) string {
	if len(key) < 16 {
		return key[:len(key)/2] + "…"
	}
	return key[:8] + "…" + key[len(key)-5:]
}

func shortHash(f idempotency.Fingerprint) string {
	text := hex.EncodeToString(f[:])
	return text[:4] + "…" + text[len(text)-4:]
}

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// elementOf names the element of a key in the page, the same in every rendering.
func elementOf(k idempotency.KeyState) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d %s %s", len(k.Scope), k.Scope, k.Key)))
	return "key-" + hex.EncodeToString(sum[:6])
}
