package stripesim

import (
	"errors"
	"time"
)

// change does something to an object that no call asked for: a customer on a page, a person at the dashboard, a test.
// It waits for the object's lock like a call, and answers as one when it does not get it or cannot write.
func (s *Server) change(a *account, id, base string, f func(*tx)) *apiError {
	timeout := time.NewTimer(s.config.LockWait)
	defer timeout.Stop()
	unlock, locked := s.acquire(func() string { return lockName(a, id) }, timeout.C)
	if !locked {
		return errLockTimeout()
	}
	defer unlock()
	switch err := s.transactWithoutCall(a, base, f); {
	case errors.Is(err, ErrNotFound):
		return missing("object", "id", id)
	case err != nil:
		s.config.Logger.Error("journal failed", "error", err)
		return errJournal()
	}
	return nil
}

// transactWithoutCall returns ErrNotFound when the account was reset meanwhile, else the journal's error.
func (s *Server) transactWithoutCall(a *account, base string, f func(*tx)) error {
	s.mu.Lock()
	if s.forgotten(a) {
		s.mu.Unlock()
		return ErrNotFound
	}
	tx := s.begin(&call{account: a, base: base})
	f(tx)
	err := tx.commit(nil)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.journal.sync()
}
