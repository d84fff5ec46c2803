package stripesim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// maxBody is the largest request body read.
const maxBody = 1 << 20

// call is one request on its way through the gates.
type call struct {
	id          string // Request-Id
	route       route
	method      string
	path        string
	subject     string // id of the object named in the path
	key         string
	base        string // this server's address as the caller knows it
	authorized  string
	connected   string // Stripe-Account
	version     string
	form        *node
	formErr     error
	fingerprint string
	account     *account
	epoch       int
	fault       fault
	faultName   string
	failure     *Failure
	lost        bool // the answer is to be dropped
	rules       []*ActiveRule
	urgent      []string // ids of deliveries to send before the answer
}

// answer is what goes back, or does not.
type answer struct {
	status      int
	body        []byte
	contentType string // application/json when empty
	code        string // of the error, for the log
	original    string // id of the request that executed
	replayed    bool
	executed    bool
	shouldRetry string
	limited     string
	dropped     bool
}

var droppedAnswer = answer{dropped: true}

// serve answers the calls of one endpoint. Nothing in it looks at the request's context: who hangs up does not undo
// what Stripe has begun.
func (s *Server) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := s.receive(rt, r)
		if err != nil {
			panic(http.ErrAbortHandler) // the request broke off before its end: it never arrived
		}
		a := s.pass(c)
		s.deliverUrgent(c)
		if s.meet(c, Answer) || c.lost {
			a.dropped = true
		}
		s.finish(c, a)
		if a.dropped {
			panic(http.ErrAbortHandler)
		}
		c.write(w, a)
	}
}

// pass takes a call through the gates, in Stripe's order.
func (s *Server) pass(c *call) answer {
	if s.meet(c, Arrival) {
		return droppedAnswer
	}
	if err := s.authenticate(c); err != nil {
		return c.failed(err)
	}
	if c.route.run == nil {
		return c.failed(errUnrecognized(c.method, c.path))
	}
	s.recognizeFault(c)
	if c.fault == faultNeverArrived && s.fireOnce(c) {
		return droppedAnswer
	}
	if a, limited := s.limit(c); limited {
		return a
	}
	if c.keyed() {
		a, claimed := s.claimKey(c)
		if !claimed {
			return a
		}
		defer s.releaseKey(c)
	}
	return s.execute(c)
}

// receive reads a request whole. Its only error is a body that broke off.
func (s *Server) receive(rt route, r *http.Request) (*call, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	c := &call{
		id: "req_" + random(14), route: rt, method: r.Method, path: r.URL.Path, subject: r.PathValue("id"),
		base: s.config.URL, authorized: bearer(r), connected: r.Header.Get("Stripe-Account"), version: r.Header.Get("Stripe-Version"),
	}
	if r.Method == http.MethodPost {
		c.key = strings.TrimSpace(r.Header.Get("Idempotency-Key"))
	}
	if c.base == "" {
		c.base = "http://" + r.Host
	}
	encoded := r.URL.RawQuery
	if len(body) > 0 {
		encoded = strings.TrimPrefix(encoded+"&"+string(body), "&")
	}
	c.form, c.formErr = parseForm(encoded)
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); len(body) > maxBody ||
		len(body) > 0 && (err != nil || media != "application/x-www-form-urlencoded") {
		c.formErr = errMalformedForm
	}
	if c.formErr == nil {
		c.fingerprint = c.form.fingerprint()
	} else {
		c.form = &node{parts: map[string]*node{}}
	}
	s.log(c)
	return c, nil
}

// bearer returns the secret key sent as a bearer token, or as the user name of basic authentication, as curl -u does.
func bearer(r *http.Request) string {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch strings.ToLower(scheme) {
	case "bearer":
		return strings.TrimSpace(value)
	case "basic":
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
		if err != nil {
			return ""
		}
		user, _, _ := strings.Cut(string(decoded), ":")
		return user
	}
	return ""
}

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
	if c.epoch != s.epoch {
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

// answered renders an object or an error.
func (c *call) answered(shown any, err *apiError) answer {
	if err != nil {
		return c.failed(err)
	}
	return answer{status: http.StatusOK, body: render(shown), original: c.id, shouldRetry: "false"}
}

func (c *call) failed(err *apiError) answer {
	a := answer{
		status: err.status, code: err.body.Code, shouldRetry: err.shouldRetry, limited: err.limited,
		body: render(map[string]any{"error": err.body}),
	}
	if err.begun {
		a.original = c.id
	}
	return a
}

// render writes JSON as Stripe does: indented, and with <, > and & as they are.
func render(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("stripesim: rendering %T: %v", v, err)) // our own types: cannot happen
	}
	return b.Bytes()
}

func (c *call) write(w http.ResponseWriter, a answer) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if a.contentType != "" {
		h.Set("Content-Type", a.contentType)
	}
	h.Set("Cache-Control", "no-cache, no-store")
	h.Set("Request-Id", c.id)
	h.Set("Stripe-Version", APIVersion)
	if c.key != "" {
		h.Set("Idempotency-Key", c.key)
	}
	if c.method == http.MethodPost && a.original != "" {
		h.Set("Original-Request", a.original)
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	if c.method == http.MethodPost && a.shouldRetry != "" {
		h.Set("Stripe-Should-Retry", a.shouldRetry)
	}
	if a.limited != "" {
		h.Set("Stripe-Rate-Limited-Reason", a.limited)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
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
