package stripesim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// APIVersion is the only version of Stripe's API that the local Stripe speaks: the one stripe-go v79 sends.
const APIVersion = "2024-06-20"

// Config says what kind of Stripe to be. Its zero value is a Stripe in memory, as the documentation describes the real one.
type Config struct {
	// ID is what GET /_sim/identity answers: who starts a local Stripe knows by it whether the one that listens on
	// the port is its own. Optional.
	ID string

	// Journal is the file that keeps everything across restarts and SIGKILL. Empty: in memory only. Its folder is made
	// when missing; a file beside it, with .lock appended, keeps a second process out.
	Journal string

	// URL is where browsers reach this server, for the addresses in objects. Empty: taken from each request's Host.
	URL string

	// SlowCall is how long pm_sim_slow takes to execute. Default value 5s.
	SlowCall time.Duration

	// LockWait is how long a call waits for an object that another call is changing, before 429 lock_timeout.
	// Default value 500ms.
	LockWait time.Duration

	// ConfirmCap is how many times one PaymentIntent may be confirmed; the next confirm makes it canceled. Stripe has such
	// a limit and does not publish it. Default value 50.
	ConfirmCap int

	// CapRefuses makes the confirm that meets the cap answer 400 payment_intent_unexpected_state with the canceled
	// PaymentIntent inside, instead of 200 with it. Stripe documents the transition, not the answer.
	CapRefuses bool

	// ForgetStateErrors makes errors about an object's state, payment_intent_unexpected_state above all, not be stored
	// under the idempotency key. By default they are: they arise in execution. Stripe does not publish which it is.
	ForgetStateErrors bool

	// Later is how long Stripe takes for what it does by itself after the answer: a payment that is processing, a refund
	// that is pending or fails, a dispute. Default value 3s.
	Later time.Duration

	// DeliverAfter is how long after the fact an event is first sent to webhook endpoints. Default value 250ms.
	DeliverAfter time.Duration

	// Backoff is how long to wait after each delivery that was not answered with 2xx; after the last one the event is
	// given up. Stripe's own schedule is not published. The default goes from 1s to a day, over three days.
	Backoff []time.Duration

	// DeliveryTimeout is how long an endpoint may take to answer. Default value 10s.
	DeliveryTimeout time.Duration

	// Logger gets one line for each call, without bodies. Default value discards.
	Logger *slog.Logger
}

// Server is one local Stripe. It is an http.Handler for the API (/v1), the control surface (/_sim) and its pages.
type Server struct {
	config  Config
	handler http.Handler
	journal *journal

	// mu guards everything below. It is only ever held for work in memory and one write to the journal: never while a
	// call is slow or held, and nothing else is locked under it.
	mu        sync.Mutex
	accounts  map[string]*account
	running   map[string]bool          // idempotency keys in use, by account and key
	locked    map[string]chan struct{} // objects in use, by account and id; closed when given back
	offset    time.Duration            // what Advance added to the clock
	rules     []*ActiveRule
	ruleCount int
	requests  requestLog
	changed   chan struct{} // closed and replaced when a rule or the log changes

	deliveryRules []*ActiveDelivery
	attempts      []Attempt
	started       map[string]bool // jobs and deliveries under way

	jobs       chan struct{} // wakes the scheduler
	stopping   chan struct{}
	stop       sync.Once
	background sync.WaitGroup
	sender     *http.Client
	senders    chan struct{} // one token for each delivery at a time
}

// New returns a local Stripe with the state that the journal holds. It returns ErrJournalInUse or ErrJournalCorrupt,
// or what the file system said.
func New(config Config) (*Server, error) {
	config.SlowCall = cmp.Or(config.SlowCall, 5*time.Second)
	config.LockWait = cmp.Or(config.LockWait, 500*time.Millisecond)
	config.ConfirmCap = cmp.Or(config.ConfirmCap, 50)
	config.Later = cmp.Or(config.Later, 3*time.Second)
	config.DeliverAfter = cmp.Or(config.DeliverAfter, 250*time.Millisecond)
	config.DeliveryTimeout = cmp.Or(config.DeliveryTimeout, 10*time.Second)
	if config.Backoff == nil {
		config.Backoff = defaultBackoff
	}
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	s := &Server{
		config:   config,
		accounts: map[string]*account{},
		running:  map[string]bool{},
		locked:   map[string]chan struct{}{},
		changed:  make(chan struct{}),
		started:  map[string]bool{},
		jobs:     make(chan struct{}, 1),
		stopping: make(chan struct{}),
		sender:   newSender(config.DeliveryTimeout),
		senders:  make(chan struct{}, maxSenders),
	}
	s.handler = s.mux()
	if config.Journal != "" {
		j, err := openJournal(config.Journal, s.apply, s.snapshot)
		if err != nil {
			return nil, fmt.Errorf("opening the local Stripe's journal: %w", err)
		}
		s.journal = j
	}
	s.background.Go(s.schedule)
	return s, nil
}

func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.name(), s.serve(r))
	}
	mux.HandleFunc("/v1/", s.serve(route{pattern: "unrecognized"}))
	s.control(mux)
	s.pages(mux)
	// The server listens where any page in the developer's browser can send a form to.
	return http.NewCrossOriginProtection().Handler(mux)
}

// ServeHTTP answers one request. To drop a connection it panics with http.ErrAbortHandler, which net/http's server
// understands and a ResponseRecorder does not.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers on the listener until the context ends, then stops in order: calls that are slow execute at once, held
// calls are dropped, answers on their way are sent, the journal is closed. It returns nil after such an end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return errors.Join(fmt.Errorf("serving the local Stripe: %w", err), s.Close())
	case <-ctx.Done():
	}
	s.end()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(grace), s.Close())
}

// Close ends what waits and closes the journal: calls that would change something answer 500 from then on. A server
// without a journal goes on in memory, without what Stripe does later. It may be called twice.
func (s *Server) Close() error {
	s.end()
	s.background.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.close()
}

func (s *Server) end() { s.stop.Do(func() { close(s.stopping) }) }

// now is the local Stripe's clock: the machine's, moved by Advance.
func (s *Server) now() time.Time { return time.Now().Add(s.offset) }

// Advance moves the clock forward: keys and tokens grow old at once, and what Stripe
// does later is done when it is due by the moved clock. It returns the journal's error.
func (s *Server) Advance(d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.journal.append(entry{Advance: d}); err != nil {
		return err
	}
	s.offset += d
	s.wakeJobs()
	return nil
}

// Reset forgets the objects and keys of the account behind a secret key, or of all when it is empty; then also rules,
// log and counts. Held calls are dropped, and a call in flight writes nothing any more.
func (s *Server) Reset(secretKey string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := entry{Reset: true}
	if secretKey != "" {
		e.Account = accountID(secretKey)
	}
	if err := s.journal.append(e); err != nil {
		return err
	}
	if err := s.apply(e); err != nil {
		return err
	}
	if secretKey == "" {
		for _, rule := range s.rules {
			rule.open(true)
		}
		s.rules, s.deliveryRules, s.attempts = nil, nil, nil
		s.requests = requestLog{}
		s.notify()
	}
	return nil
}

// notify wakes whoever waits for a change of rules or log. The caller holds the mutex.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
