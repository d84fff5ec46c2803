package stripesim

import (
	"errors"
	"time"
)

var errStopping = errors.New("server stopping")

// job is something that Stripe does by itself later. It is a record, so that a restart does not forget it.
type job struct {
	ID      string    `json:"id"`
	Due     time.Time `json:"due"`
	Does    string    `json:"does"`
	Subject string    `json:"subject"` // id of the object it changes
	Locks   string    `json:"locks"`   // id of the object whose lock it needs; empty for none
	Base    string    `json:"base"`    // this server's address as the caller knew it
}

func (j *job) ident() string    { return j.ID }
func (j *job) kind() string     { return "job" }
func (j *job) createdAt() int64 { return seconds(j.Due) }
func (j *job) shown() any       { return j }

// duties are what a job can do. A duty that finds its object changed meanwhile does nothing.
var duties = map[string]func(*tx, string){
	"settle payment": (*tx).settleProcessing,
	"settle refund":  (*tx).settleRefund,
	"open dispute":   (*tx).openDispute,
}

// later stages a job.
func (tx *tx) later(after time.Duration, does, subject, locks string) {
	tx.put(&job{ID: newID("job"), Due: tx.server.now().Add(after), Does: does, Subject: subject, Locks: locks, Base: tx.call.base})
}

// wakeJobs makes the scheduler look again. The caller holds the mutex.
func (s *Server) wakeJobs() {
	select {
	case s.jobs <- struct{}{}:
	default: // it will look anyway
	}
}

// schedule runs every job when it is due, until the server stops.
func (s *Server) schedule() {
	for {
		wait := s.startDue()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.jobs:
			timer.Stop()
		case <-s.stopping:
			timer.Stop()
			return
		}
	}
}

// startDue starts the jobs and deliveries that are due and returns how long the next one has time.
func (s *Server) startDue() time.Duration {
	const idle = time.Hour
	s.mu.Lock()
	defer s.mu.Unlock()
	next := idle
	for _, a := range s.accounts {
		for _, kind := range []string{"job", "delivery"} {
			for _, id := range a.order[kind] {
				if s.started[id] {
					continue
				}
				if wait := dueIn(a.records[id], s.now()); wait > 0 {
					next = min(next, wait)
					continue
				}
				s.started[id] = true
				s.background.Go(func() { s.runStarted(a, id) })
			}
		}
	}
	return next
}

func dueIn(r record, now time.Time) time.Duration {
	switch r := r.(type) {
	case *job:
		return r.Due.Sub(now)
	case *delivery:
		return r.Due.Sub(now)
	}
	return 0
}

// runStarted runs a job or a delivery. One that could not be written down stays started, so that a full disk does not
// make it run without end; the next start of the server tries it again.
func (s *Server) runStarted(a *account, id string) {
	s.mu.Lock()
	r := a.records[id]
	s.mu.Unlock()
	var err error
	switch r := r.(type) {
	case *job:
		err = s.runJob(a, r)
	case *delivery:
		err = s.runDelivery(a, r)
	}
	if err != nil {
		s.config.Logger.Error("job failed", "id", id, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.started, id)
	s.wakeJobs()
}

// runJob locks the job's object like a call would, waiting as long as it takes, and does the job in one transaction.
func (s *Server) runJob(a *account, j *job) error {
	unlock, locked := s.acquire(func() string { return lockName(a, j.Locks) }, nil)
	if !locked {
		return errStopping // the journal has the job
	}
	defer unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten(a) {
		return nil
	}
	tx := s.begin(&call{account: a, base: j.Base})
	if duty, known := duties[j.Does]; known {
		duty(tx, j.Subject)
	}
	tx.remove(j.ID)
	return tx.commit(nil)
}
