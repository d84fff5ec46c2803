package stripesim

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
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
	fault       fault
	faultName   string
	failure     *Failure
	lost        bool // the answer is to be dropped
	rules       []*ActiveRule
	urgent      []string // ids of deliveries to send before the answer
}

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
