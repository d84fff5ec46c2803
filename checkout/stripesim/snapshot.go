package stripesim

import (
	"encoding/json"
	"time"
)

// eventLife is how long Stripe lets events be retrieved (https://docs.stripe.com/api/events).
const eventLife = 30 * 24 * time.Hour

// snapshot writes the whole state as journal lines, without what Stripe would have forgotten by now.
func (s *Server) snapshot(write func(entry) error) error {
	if s.offset != 0 {
		if err := write(entry{Advance: s.offset}); err != nil {
			return err
		}
	}
	for _, a := range s.accounts {
		if err := s.snapshotAccount(a, write); err != nil {
			return err
		}
	}
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
