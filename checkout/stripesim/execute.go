package stripesim

import (
	"net/http"
	"time"
)

// execute validates the call, locks its object and runs its operation in one transaction.
func (s *Server) execute(c *call) answer {
	p, err := c.validate()
	if err != nil {
		return c.failed(err)
	}
	unlock, err := s.lockObject(c)
	if err != nil {
		return c.failed(err)
	}
	defer unlock()
	if s.meet(c, Execution) {
		return droppedAnswer
	}
	if c.fault == faultSlow {
		s.pause(s.config.SlowCall)
	}
	a, failed := s.transact(c, p)
	if failed == nil {
		failed = s.journal.sync()
	}
	if failed != nil {
		s.config.Logger.Error("journal failed", "error", failed)
		return c.failed(errJournal())
	}
	return a
}

func (c *call) validate() (params, *apiError) {
	if c.formErr != nil {
		return params{}, refuse("", "", "Invalid request (check that your POST content type is application/x-www-form-urlencoded).")
	}
	return params{c.form}, check(c.form, c.route.takes, "")
}

// transact runs the operation and commits what it did together with the result under the key. The error is the journal's.
func (s *Server) transact(c *call, p params) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten(c.account) {
		return droppedAnswer, nil
	}
	tx := s.begin(c)
	shown, apiErr := s.operate(tx, p)
	if apiErr == nil {
		shown, apiErr = tx.expand(shown, p.texts("expand"))
	}
	a := c.answered(shown, apiErr)
	if apiErr != nil && !apiErr.begun {
		return a, nil
	}
	a.executed = c.method == http.MethodPost
	if c.failure != nil {
		a = c.failure.answer(c)
		a.executed = c.failure.Executed
	}
	var key *storedKey
	if c.keyed() && s.stores(c, apiErr) {
		key = &storedKey{
			Key: c.key, Method: c.method, Path: c.path, Fingerprint: c.fingerprint, Request: c.id,
			Status: a.status, Code: a.code, Body: string(a.body), ContentType: a.contentType, ShouldRetry: a.shouldRetry, At: s.now(),
		}
	}
	return a, tx.commit(key)
}

// operate runs the call's operation, or what a fault puts in its place.
func (s *Server) operate(tx *tx, p params) (any, *apiError) {
	c := tx.call
	if c.failure != nil && !c.failure.Executed {
		return nil, &apiError{begun: true}
	}
	switch c.fault {
	case faultAlways500:
		return nil, errServer()
	case faultServerError:
		if tx.fire() {
			return nil, errServer()
		}
	}
	shown, apiErr := c.route.run(tx, p)
	if c.fault == faultReplyLost && (apiErr == nil || apiErr.begun) && tx.fire() {
		c.lost = true
	}
	return shown, apiErr
}

// stores tells whether the result belongs under the key.
func (s *Server) stores(c *call, err *apiError) bool {
	if c.failure != nil {
		return c.failure.Stored
	}
	return err == nil || err.begun && !(err.status == http.StatusBadRequest && s.config.ForgetStateErrors)
}

// pause waits for d, less when the server stops: what is slow then executes at once, as Stripe would have finished it.
func (s *Server) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.stopping:
	}
}
