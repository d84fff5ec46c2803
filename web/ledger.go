package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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

// ledgerView is the JSON of an account's keys. Keys and tokens are shortened:
// whoever may use one has it already.
type ledgerView struct {
	Keys  []keyView `json:"keys"`
	Tally tallyView `json:"tally"`
	// More is true if the account has older keys that are not listed.
	More   bool       `json:"more"`
	ReadAt *time.Time `json:"read_at,omitempty"` // by the database's clock
}

type keyView struct {
	Key           string             `json:"key"`
	Operation     string             `json:"operation"`
	Order         string             `json:"order,omitempty"`
	Fingerprint   string             `json:"fingerprint"`
	Status        idempotency.Status `json:"status"`
	NeedsPerson   bool               `json:"needs_person"`
	RecoveryPoint string             `json:"recovery_point"`
	Attempt       int                `json:"attempt"`
	Takeovers     int                `json:"takeovers"`
	Owner         string             `json:"owner"`
	Instance      string             `json:"instance"`
	LeaseLeft     *float64           `json:"lease_left,omitempty"` // seconds, negative once lapsed
	Answer        *answerView        `json:"answer,omitempty"`
	Replays       int                `json:"replays"`
	CreatedAt     time.Time          `json:"created_at"`
	CompletedAt   *time.Time         `json:"completed_at,omitempty"`
	History       []entryView        `json:"history"`
}

type answerView struct {
	Status int    `json:"status"`
	Bytes  int    `json:"bytes"`
	Code   string `json:"code,omitempty"`
	Charge string `json:"charge,omitempty"`
}

type entryView struct {
	What     idempotency.What `json:"what"`
	At       time.Time        `json:"at"`
	Attempt  int              `json:"attempt"`
	Owner    string           `json:"owner"`
	Instance string           `json:"instance"`
	Status   int              `json:"status,omitempty"`
	Point    string           `json:"point,omitempty"`
	Settled  bool             `json:"settled,omitempty"`
	Waited   float64          `json:"waited_ms,omitempty"`
	Took     float64          `json:"took_ms,omitempty"`
	Held     float64          `json:"held_ms,omitempty"`
	Lease    float64          `json:"lease_ms,omitempty"`
}

// tallyView counts the keys that are listed.
type tallyView struct {
	Keys         int `json:"keys"`
	Completed    int `json:"completed"`
	InProgress   int `json:"in_progress"`
	Retryable    int `json:"failed_retryable"`
	NeedPerson   int `json:"need_person"`
	Replays      int `json:"replays"`
	ChargedTwice int `json:"charged_twice"` // orders for which two charges were answered
}

func (b *book) view() ledgerView {
	v := ledgerView{Keys: []keyView{}, Tally: b.tally(), More: len(b.keys) == ledgerKeys}
	for _, k := range b.keys {
		v.ReadAt = &k.ReadAt
		one := keyView{
			Key: shortKey(string(k.Key)), Operation: k.Operation, Order: b.orderOf(k), Fingerprint: shortHash(k.Fingerprint),
			Status: k.Status, NeedsPerson: checkout.NeedsPerson(k), RecoveryPoint: k.RecoveryPoint,
			Attempt: k.Attempt, Takeovers: k.Takeovers, Owner: ownerName(k.Owner), Instance: k.Instance,
			Replays: k.Replays, CreatedAt: k.CreatedAt, History: []entryView{},
		}
		if k.Status == idempotency.InProgress {
			left := k.LeaseLeft.Seconds()
			one.LeaseLeft = &left
		} else {
			one.CompletedAt = &k.CompletedAt
		}
		if k.Status == idempotency.Completed {
			a := readAnswer(k)
			one.Answer = &answerView{k.Response.Status, len(k.Response.Body), a.Code, a.Charge}
		}
		for _, e := range b.history[k.Key] {
			one.History = append(one.History, entryView{
				e.What, e.At, e.Attempt, ownerName(e.Owner), e.Instance, e.Status, e.Point, e.Settled,
				inMS(e.Waited), inMS(e.Took), inMS(e.Held), inMS(e.Lease),
			})
		}
		v.Keys = append(v.Keys, one)
	}
	return v
}

// mark names what a book says, apart from what time alone changes.
func (b *book) mark() string {
	v := b.view()
	v.ReadAt = nil
	for i := range v.Keys {
		v.Keys[i].LeaseLeft = nil
	}
	var orders []string
	for _, id := range slices.Sorted(maps.Keys(b.orders)) {
		_, words := charged(b.orders[id])
		orders = append(orders, id+words)
	}
	text, err := json.Marshal(struct {
		ledgerView
		Orders []string
	}{v, orders})
	if err != nil {
		panic("web: bug: encoding the ledger: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func (b *book) tally() (t tallyView) {
	charges := map[string]map[string]bool{}
	for _, k := range b.keys {
		t.Keys++
		t.Replays += k.Replays
		switch {
		case checkout.NeedsPerson(k):
			t.NeedPerson++
		case k.Status == idempotency.Completed:
			t.Completed++
		case k.Status == idempotency.InProgress:
			t.InProgress++
		case k.Status == idempotency.FailedRetryable:
			t.Retryable++
		}
		if a := readAnswer(k); a.Charge != "" && strings.HasSuffix(k.Operation, "/payments") {
			order := b.orderOf(k)
			if charges[order] == nil {
				charges[order] = map[string]bool{}
			}
			charges[order][a.Charge] = true
		}
	}
	for _, of := range charges {
		if len(of) > 1 {
			t.ChargedTwice++
		}
	}
	return t
}

// stored answers hold these, depending on what they answer.
type storedAnswer struct {
	ID     string `json:"id"`
	Order  string `json:"order"`
	Code   string `json:"code"`
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
