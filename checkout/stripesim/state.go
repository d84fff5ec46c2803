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

func (s *Server) account(id string) *account {
	a, known := s.accounts[id]
	if !known {
		a = newAccount(id)
		s.accounts[id] = a
	}
	return a
}

// tx is what one call changes. Nothing is visible to others, nor written, before it is committed.
type tx struct {
	server  *Server
	account *account
	call    *call
	staged  map[string]record
	puts    []record
	gone    []string
	fired   []string
}

func (s *Server) begin(c *call) *tx {
	return &tx{server: s, account: c.account, call: c, staged: map[string]record{}}
}

// get returns the record with this id as the transaction sees it, nil when there is none.
func (tx *tx) get(id string) record {
	if r, changed := tx.staged[id]; changed {
		return r
	}
	if r, found := tx.account.records[id]; found {
		return r
	}
	return nil
}

// put stages a record. The caller must not change it afterwards.
func (tx *tx) put(r record) {
	if _, again := tx.staged[r.ident()]; again {
		for i, old := range tx.puts {
			if old.ident() == r.ident() {
				tx.puts[i] = r
			}
		}
	} else {
		tx.puts = append(tx.puts, r)
	}
	tx.staged[r.ident()] = r
}

// remove stages the end of a record.
func (tx *tx) remove(id string) { tx.gone = append(tx.gone, id) }

// each calls f with every record of a kind, newest first, until f returns false.
func (tx *tx) each(kind string, f func(record) bool) {
	ids := tx.account.order[kind]
	for i := len(ids) - 1; i >= 0; i-- {
		if !f(tx.get(ids[i])) {
			return
		}
	}
}

func (tx *tx) now() int64 { return seconds(tx.server.now()) }

// commit writes the journal's line, then shows the changes to everyone. key is nil when the result is not stored.
func (tx *tx) commit(key *storedKey) error {
	if len(tx.puts) == 0 && len(tx.gone) == 0 && len(tx.fired) == 0 && key == nil {
		return nil
	}
	e := entry{Account: tx.account.id, Gone: tx.gone, Key: key, Fired: tx.fired}
	for _, r := range tx.puts {
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		e.Put = append(e.Put, putRecord{r.kind(), data})
	}
	if err := tx.server.journal.append(e); err != nil {
		return err
	}
	for _, r := range tx.puts {
		tx.account.put(r)
	}
	for _, id := range tx.gone {
		tx.account.remove(id)
	}
	if key != nil {
		tx.account.keys[key.Key] = key
	}
	for _, name := range tx.fired {
		tx.account.fired[name] = true
	}
	tx.server.wakeJobs()
	return nil
}

func (s *Server) snapshotAccount(a *account, write func(entry) error) error {
	for kind, ids := range a.order {
		kept := ids[:0:0]
		for _, id := range ids {
			r := a.records[id]
			if kind == "event" && s.now().Sub(time.Unix(r.createdAt(), 0)) > eventLife {
				delete(a.records, id)
				continue
			}
			kept = append(kept, id)
			data, err := json.Marshal(r)
			if err != nil {
				return err
			}
			if err := write(entry{Account: a.id, Put: []putRecord{{kind, data}}}); err != nil {
				return err
			}
		}
		a.order[kind] = kept
	}
	for name, key := range a.keys {
		if s.now().Sub(key.At) >= keyLife {
			delete(a.keys, name)
			continue
		}
		if err := write(entry{Account: a.id, Key: key}); err != nil {
			return err
		}
	}
	for name := range a.fired {
		if err := write(entry{Account: a.id, Fired: []string{name}}); err != nil {
			return err
		}
	}
	return nil
}
