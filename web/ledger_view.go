package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"payonce/checkout"
	"payonce/idempotency"
)

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
