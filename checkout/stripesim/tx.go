package stripesim

import "encoding/json"

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
	if err := tx.write(key); err != nil {
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

// write appends the transaction to the journal, if there is one.
func (tx *tx) write(key *storedKey) error {
	if tx.server.journal == nil {
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
	return tx.server.journal.append(e)
}
