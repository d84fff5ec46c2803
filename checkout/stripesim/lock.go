package stripesim

import "time"

// lockObject makes the call the only one that changes its object, or answers 429 lock_timeout. The object's lock is
// taken after the key's and held across holds and slow calls; the server's mutex is not.
func (s *Server) lockObject(c *call) (func(), *apiError) {
	timeout := time.NewTimer(s.config.LockWait)
	defer timeout.Stop()
	unlock, locked := s.acquire(func() string {
		if c.route.locks == nil {
			return ""
		}
		return lockName(c.account, c.route.locks(c.account, c))
	}, timeout.C)
	if !locked {
		return nil, errLockTimeout()
	}
	return unlock, nil
}

// acquire waits for a lock until timeout or the end of the server. name is asked under the mutex; "" needs no lock.
func (s *Server) acquire(name func() string, timeout <-chan time.Time) (unlock func(), locked bool) {
	for {
		s.mu.Lock()
		id := name()
		if id == "" {
			s.mu.Unlock()
			return func() {}, true
		}
		given, taken := s.locked[id]
		if !taken {
			s.locked[id] = make(chan struct{})
			s.mu.Unlock()
			return func() { s.unlock(id) }, true
		}
		s.mu.Unlock()
		select {
		case <-given:
		case <-timeout:
			return nil, false
		case <-s.stopping:
			return nil, false
		}
	}
}

func (s *Server) unlock(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.locked[id])
	delete(s.locked, id)
}

// lockName is empty without an object, since then there is nothing to lock.
func lockName(a *account, id string) string {
	if id == "" {
		return ""
	}
	return a.id + "/" + id
}
