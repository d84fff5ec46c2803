package stripesim

import (
	"encoding/json"
	"slices"
	"time"
)

// account is everything behind one secret key. The server's mutex guards it.
type account struct {
	id      string
	records map[string]record
	order   map[string][]string // ids by kind, oldest first
	keys    map[string]*storedKey
	fired   map[string]bool // faults that happen once, as `<PaymentIntent>/<fault>`
}

func newAccount(id string) *account {
	return &account{
		id: id, records: map[string]record{}, order: map[string][]string{},
		keys: map[string]*storedKey{}, fired: map[string]bool{},
	}
}

func (a *account) put(r record) {
	if _, known := a.records[r.ident()]; !known {
		a.order[r.kind()] = append(a.order[r.kind()], r.ident())
	}
	a.records[r.ident()] = r
}

func (a *account) remove(id string) {
	if r, found := a.records[id]; found {
		delete(a.records, id)
		a.order[r.kind()] = slices.DeleteFunc(a.order[r.kind()], func(other string) bool { return other == id })
	}
}

// entry is one line of the journal: everything that one call changed. A call's charge and the result stored under its
// key stand in one line, so that no crash can separate them.
type entry struct {
	Account string        `json:"account,omitempty"`
	Put     []putRecord   `json:"put,omitempty"`
	Gone    []string      `json:"gone,omitempty"` // ids of removed records
	Key     *storedKey    `json:"key,omitempty"`
	Pruned  []string      `json:"pruned,omitempty"`
	Fired   []string      `json:"fired,omitempty"`
	Reset   bool          `json:"reset,omitempty"`
	Advance time.Duration `json:"advance,omitempty"`
}

type putRecord struct {
	Kind   string          `json:"kind"`
	Record json.RawMessage `json:"record"`
}

// apply makes the state what it was after the call that wrote the entry.
func (s *Server) apply(e entry) error {
	if e.Reset {
		if e.Account == "" {
			s.accounts, s.offset = map[string]*account{}, 0
		} else {
			delete(s.accounts, e.Account)
		}
		return nil
	}
	s.offset += e.Advance
	if e.Account == "" {
		return nil
	}
	a := s.account(e.Account)
	for _, p := range e.Put {
		r := blank(p.Kind)
		if r == nil {
			continue
		}
		if err := json.Unmarshal(p.Record, r); err != nil {
			return err
		}
		a.put(r)
	}
	for _, id := range e.Gone {
		a.remove(id)
	}
	if e.Key != nil {
		a.keys[e.Key.Key] = e.Key
	}
	for _, key := range e.Pruned {
		delete(a.keys, key)
	}
	for _, name := range e.Fired {
		a.fired[name] = true
	}
	return nil
}

// forgotten tells whether a Reset came between: what began before it must not write after it.
func (s *Server) forgotten(a *account) bool { return s.accounts[a.id] != a }

func (s *Server) account(id string) *account {
	a, known := s.accounts[id]
	if !known {
		a = newAccount(id)
		s.accounts[id] = a
	}
	return a
}
