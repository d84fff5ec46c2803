package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"payonce/idempotency/retry"
)

// storm is what all buyers of a storm share.
type storm struct {
	shops  *rotation
	client *retry.Client
	copies int
	course stormCourse
}

type stormCourse struct {
	Slug     string `json:"slug"`
	Title    string `json:"title"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// newStorm looks at the first shop's catalogue, and takes the first course that
// costs something.
func newStorm(ctx context.Context, c *stormCommand) (*storm, error) {
	shops, err := newRotation(c.URL, c.AtOnce*c.Copies)
	if err != nil {
		return nil, err
	}
	s := &storm{shops: shops, copies: c.Copies, client: &retry.Client{For: c.For, HTTP: shops.client()}}
	var catalogue struct {
		Courses []stormCourse `json:"courses"`
	}
	if _, err := s.get(ctx, "", "/", &catalogue); err != nil {
		return nil, fmt.Errorf("%s: %w: start the shop first (make run), or name it with --url", c.URL[0], err)
	}
	for _, course := range catalogue.Courses {
		if course.Amount > 0 {
			s.course = course
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s sells no course that costs something", c.URL[0])
}

// tale is what became of one order.
type tale struct {
	order  string
	copies []copied
	// paid is true if the order page says so; charges is what Stripe counts, and
	// counted if it was asked.
	paid, counted bool
	charges       int
	// unknown is true if a copy's outcome is, failed why no order was placed.
	unknown bool
	failed  error
	broken  []string
}

// copied is what one copy of a payment was answered.
type copied struct {
	answer *retry.Response
	took   time.Duration
	err    error
}

// buy places an order as a new customer, and pays for it with copies of one
// request, all with its one key, at once. Then it asks what became of it.
func (s *storm) buy(ctx context.Context, method string, n int) tale {
	session, err := s.session(ctx)
	if err != nil {
		return tale{failed: err}
	}
	placed, err := s.post(ctx, session, "/orders", retry.NewKey(), map[string]string{"course": s.course.Slug}, n)
	if err != nil {
		return tale{failed: err}
	}
	var order struct {
		ID         string `json:"id"`
		PaymentKey string `json:"payment_key"`
	}
	if placed.Status != http.StatusCreated || json.Unmarshal(placed.Body, &order) != nil || order.ID == "" || order.PaymentKey == "" {
		return tale{failed: fmt.Errorf("placing an order: %d %s", placed.Status, firstOf(placed.Body))}
	}

	t := tale{order: order.ID, copies: make([]copied, s.copies)}
	start := make(chan struct{})
	var senders sync.WaitGroup
	for i := range t.copies {
		senders.Go(func() {
			<-start
			began := time.Now()
			c := &t.copies[i]
			c.answer, c.err = s.post(ctx, session, "/orders/"+order.ID+"/payments", order.PaymentKey, map[string]string{"payment_method": method}, i)
			c.took = time.Since(began)
		})
	}
	close(start)
	senders.Wait()
	s.judge(ctx, session, &t)
	return t
}

// judge asks the shop and Stripe about an order, and holds the invariants.
func (s *storm) judge(ctx context.Context, session string, t *tale) {
	breaks := func(format string, args ...any) {
		t.broken = append(t.broken, t.order+": "+fmt.Sprintf(format, args...))
	}
	var first *retry.Response
	fresh := 0
	for _, c := range t.copies {
		switch {
		case errors.Is(c.err, retry.ErrUnknown), c.err != nil:
			t.unknown = true
			continue
		case first == nil:
			first = c.answer
		case c.answer.Status != first.Status || !bytes.Equal(c.answer.Body, first.Body):
			breaks("two answers under one key: %d %s, and %d %s", first.Status, firstOf(first.Body), c.answer.Status, firstOf(c.answer.Body))
		}
		if !c.answer.Replayed {
			fresh++
		}
	}
	if fresh > 1 {
		breaks("%d answers that were not replayed: the key had several owners at once", fresh)
	}

	var order struct {
		Status   string `json:"status"`
		Payments []struct {
			Status string `json:"status"`
		} `json:"payments"`
	}
	if _, err := s.get(ctx, session, "/orders/"+t.order, &order); err != nil {
		t.unknown = true
		return
	}
	succeeded := 0
	for _, p := range order.Payments {
		if p.Status == "succeeded" {
			succeeded++
		}
	}
	t.paid = order.Status == "paid"
	if succeeded > 1 || t.paid != (succeeded == 1) {
		breaks("the order is %s, with %d payments that succeeded", order.Status, succeeded)
	}
	if first != nil && first.Status == http.StatusCreated && !t.paid {
		breaks("the answer says paid, and the order is %s", order.Status)
	}
	if first != nil && first.Status >= http.StatusBadRequest && t.paid {
		breaks("the answer is %d, and the order is paid", first.Status)
	}

	var counted struct {
		Charges int `json:"charges"`
	}
	switch status, err := s.get(ctx, session, "/orders/"+t.order+"/charges", &counted); {
	case status == http.StatusNotFound: // outside demo mode a shop hands no counts on
		return
	case err != nil:
		t.unknown = true
		return
	}
	t.counted, t.charges = true, counted.Charges
	if t.charges > 1 {
		breaks("%d charges at Stripe", t.charges)
	}
	if !t.unknown && t.paid != (t.charges == 1) {
		breaks("the order is %s, with %d charges at Stripe", order.Status, t.charges)
	}
}

// session becomes a customer: any GET makes one.
func (s *storm) session(ctx context.Context) (string, error) {
	answer, err := s.ask(ctx, "", "/")
	if err != nil {
		return "", err
	}
	for _, cookie := range answer.Cookies() {
		return cookie.Name + "=" + cookie.Value, nil
	}
	return "", errors.New("the shop set no cookie")
}

// post sends a keyed request until its outcome is known, at first to the shop
// of this turn.
func (s *storm) post(ctx context.Context, session, path, key string, body any, turn int) (*retry.Response, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return s.client.Do(s.shops.from(ctx, turn), retry.Request{
		URL: s.shops.any() + path, Key: key, Body: content,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Cookie": {session}},
	})
}

// get reads JSON, and gives the status.
func (s *storm) get(ctx context.Context, session, path string, into any) (int, error) {
	answer, err := s.ask(ctx, session, path)
	if err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return answer.StatusCode, fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return answer.StatusCode, fmt.Errorf("GET %s: not a shop's answer: %w", path, err)
	}
	return answer.StatusCode, nil
}

// ask sends a GET to one shop after the other until one answers, and reads the
// answer whole.
func (s *storm) ask(ctx context.Context, session, path string) (*http.Response, error) {
	var failed error
	for turn := range 2 * len(s.shops.bases) {
		req, err := http.NewRequestWithContext(s.shops.from(ctx, turn), http.MethodGet, s.shops.any()+path, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/json")
		if session != "" {
			req.Header.Set("Cookie", session)
		}
		answer, err := s.client.HTTP.Do(req)
		if err != nil {
			failed = err
			continue
		}
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		_ = answer.Body.Close()
		if failed = err; err != nil || answer.StatusCode >= http.StatusInternalServerError {
			continue
		}
		answer.Body = io.NopCloser(bytes.NewReader(body))
		return answer, nil
	}
	return nil, cmp.Or(failed, errors.New("no shop answers"))
}

// firstOf is the beginning of an answer, for a line of text.
func firstOf(body []byte) string {
	const most = 160
	text := strings.Join(strings.Fields(string(body)), " ")
	return text[:min(most, len(text))]
}

// rotation sends each request to one of several shops, and each time that it is
// sent again to the next: a shop that was killed is not asked twice in a row.
type rotation struct {
	bases     []*url.URL
	transport http.RoundTripper
}

func newRotation(addresses []string, connections int) (*rotation, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.MaxIdleConns, transport.MaxIdleConnsPerHost = nil, 0, connections
	r := &rotation{transport: transport}
	for _, address := range addresses {
		u, err := url.Parse(strings.TrimRight(address, "/"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
			return nil, fmt.Errorf("--url is %q: set a scheme and a host, such as http://127.0.0.1:8081", address)
		}
		r.bases = append(r.bases, u)
	}
	return r, nil
}

// any is a base to write in a request; RoundTrip replaces it.
func (r *rotation) any() string { return r.bases[0].String() }

func (r *rotation) client() *http.Client {
	return &http.Client{
		Transport: r, Timeout: retry.DefaultTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type turnKey struct{}

// from makes the requests of a context begin at a turn.
func (r *rotation) from(ctx context.Context, turn int) context.Context {
	next := &atomic.Int64{}
	next.Store(int64(turn))
	return context.WithValue(ctx, turnKey{}, next)
}

// RoundTrip implements http.RoundTripper.
func (r *rotation) RoundTrip(req *http.Request) (*http.Response, error) {
	turn := 0
	if next, ok := req.Context().Value(turnKey{}).(*atomic.Int64); ok {
		turn = int(next.Add(1) - 1)
	}
	base := r.bases[turn%len(r.bases)]
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = base.Scheme, base.Host, base.Host
	return r.transport.RoundTrip(req)
}
