package web_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"payonce/checkout"
	"payonce/idempotency"
)

// sentinels are the errors that the web's callees declare, and the codes they
// become. Those that never leave their package become internal.
var sentinels = map[string]struct {
	err        error
	code       string
	retryAfter string
}{
	"checkout.ErrNotFound":          {checkout.ErrNotFound, "not_found", ""},
	"checkout.ErrPaymentInProgress": {checkout.ErrPaymentInProgress, "payment_in_progress", ""},
	"checkout.ErrOrderAlreadyPaid":  {checkout.ErrOrderAlreadyPaid, "order_already_paid", ""},
	"checkout.ErrOrderClosed":       {checkout.ErrOrderClosed, "order_closed", ""},
	"checkout.ErrAlreadyEnrolled":   {checkout.ErrAlreadyEnrolled, "already_enrolled", ""},
	"checkout.ErrOutcomeUnknown":    {checkout.ErrOutcomeUnknown, "outcome_unknown", "2"},
	"checkout.ErrProviderBusy":      {checkout.ErrProviderBusy, "provider_busy", "1"},
	"checkout.ErrProviderRefused":   {checkout.ErrProviderRefused, "provider_refused", ""},

	"idempotency.ErrKeyMissing":     {idempotency.ErrKeyMissing, "key_missing", ""},
	"idempotency.ErrKeyMalformed":   {idempotency.ErrKeyMalformed, "key_malformed", ""},
	"idempotency.ErrKeyReused":      {idempotency.ErrKeyReused, "key_reused", ""},
	"idempotency.ErrInProgress":     {idempotency.ErrInProgress, "request_in_progress", "1"},
	"idempotency.ErrClaimContended": {idempotency.ErrClaimContended, "claim_contended", "1"},
	"idempotency.ErrOverloaded":     {idempotency.ErrOverloaded, "overloaded", "1"},
	"idempotency.ErrFenced":         {idempotency.ErrFenced, "internal", "1"},
	"idempotency.ErrCommitUnknown":  {idempotency.ErrCommitUnknown, "outcome_unknown", "2"},
}

// elsewhere are sentinels of methods that no Service of the web has.
var elsewhere = []string{"checkout.ErrNotStuck", "checkout.ErrRefundFailed", "checkout.ErrNotDismissable", "idempotency.ErrNotStuck"}

// TestErrorTable: every sentinel has its answer, also deep inside others.
func TestErrorTable(t *testing.T) {
	t.Parallel()

	t.Run("KnowsEverySentinel", func(t *testing.T) {
		t.Parallel()
		var known []string
		for name := range sentinels {
			known = append(known, name)
		}
		all := append(declared(t, "checkout"), declared(t, "idempotency")...)
		all = slices.DeleteFunc(all, func(name string) bool { return slices.Contains(elsewhere, name) })
		require.ElementsMatch(t, all, known)
	})

	wrappings := map[string]func(error) error{
		"Bare":       func(err error) error { return err },
		"Wrapped":    func(err error) error { return fmt.Errorf("doing one thing: %w", fmt.Errorf("doing another: %w", err)) },
		"Joined":     func(err error) error { return errors.Join(errors.New("one thing"), err) },
		"InConflict": func(err error) error { return fmt.Errorf("paying: %w", &checkout.ConflictError{Err: err}) },
	}
	for name, row := range sentinels {
		for how, wrap := range wrappings {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				s.fake.fails(wrap(row.err))
				got := s.send(post(payments, withVisa))
				p := got.problem()
				want := checkout.NewProblem(row.code)
				require.Equal(t, row.code, p.Code)
				require.Equal(t, want.Status, got.status)
				require.Equal(t, want.Type, p.Type)
				require.Equal(t, want.SafeNewKey, p.SafeNewKey)
				require.Equal(t, row.retryAfter, got.header.Get("Retry-After"))
				require.Empty(t, got.header.Get("Idempotent-Replayed"))
			})
		}
	}

	t.Run("EveryDefinedCodeCanBeAnswered", func(t *testing.T) {
		t.Parallel()
		// What the web refuses by itself, and what comes stored from the Service.
		answered := map[string]bool{
			"invalid_request": true, "no_session": true, "cross_site": true, "method_not_allowed": true, "too_large": true,
			"media_type": true, "card_declined": true, "payment_not_made": true, "refund_not_possible": true,
		}
		for _, row := range sentinels {
			answered[row.code] = true
		}
		for _, d := range checkout.Definitions() {
			require.True(t, answered[d.Code], d.Code)
			delete(answered, d.Code)
		}
		require.Empty(t, answered, "codes that are not defined")
	})
}

// TestProblemsSpeakOfWhatWasAsked: who asked for a refund is not told about a
// charge, and who gives a payment up, which takes no key, is not told to keep one.
func TestProblemsSpeakOfWhatWasAsked(t *testing.T) {
	t.Parallel()
	troubles := []error{
		checkout.ErrOutcomeUnknown, checkout.ErrProviderBusy, checkout.ErrProviderRefused, idempotency.ErrOverloaded,
		idempotency.ErrInProgress, idempotency.ErrClaimContended, checkout.ErrPaymentInProgress, errors.New("a surprise"),
	}
	for _, err := range troubles {
		s := open(t)
		s.fake.fails(err)
		refund := s.send(post(refunds, `{"amount":4900}`)).problem()
		require.NotRegexp(t, `(?i)charge|card|next key`, refund.Detail, refund.Code)

		s.fake.fails(err)
		page := s.send(form(refunds, "amount=4900&idempotency_key=k")).page()
		_, words, _ := strings.Cut(page, `<main id="main"`)
		words, _, _ = strings.Cut(words, "The same, for a machine")
		if !errors.Is(err, checkout.ErrPaymentInProgress) { // which no refund meets
			require.NotRegexp(t, `(?i)pay again|card|were paying`, words, refund.Code)
		}

		s.fake.fails(err)
		cancel := s.send(post("/payments/"+somePay+"/cancel", "")).problem()
		if errors.Is(err, idempotency.ErrInProgress) || errors.Is(err, idempotency.ErrClaimContended) {
			continue // of a key
		}
		require.NotRegexp(t, `(?i)(same|new|next) key|charge`, cancel.Detail, cancel.Code)
		require.NotEqual(t, checkout.NewProblem(cancel.Code).Detail, cancel.Detail, cancel.Code)
	}
}

// declared lists the sentinels that a package of this module exports.
func declared(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, spec := range vars.Specs {
				for _, id := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(id.Name, "Err") {
						names = append(names, pkg+"."+id.Name)
					}
				}
			}
		}
	}
	return names
}

func TestErrorsCarryWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	pending := &checkout.Payment{
		ID: somePay, Order: someOrder, Key: someKey, Status: checkout.PaymentPending, Price: checkout.Money{Amount: 4900, Currency: "usd"},
		NextAction: "https://bank.example/?client_secret=pi_1_secret_2", ConfirmationToken: "ctoken_1",
	}

	t.Run("Conflict", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.fails(&checkout.ConflictError{
			Err: checkout.ErrPaymentInProgress, Course: slug, Order: someOrder, Payment: pending, RetryAfter: 3,
		})
		got := s.send(post(payments, withVisa))
		p := got.problem()
		require.Equal(t, 409, got.status)
		require.Equal(t, "3", got.header.Get("Retry-After"))
		require.Equal(t, someOrder, p.Order)
		require.Equal(t, slug, p.Course)
		require.Equal(t, pending.View(), *p.Payment)
		require.Empty(t, p.PaymentKey)
		require.NotContains(t, string(got.body), "secret")
	})

	t.Run("TheNextKey", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.fails(&checkout.ConflictError{Err: checkout.ErrProviderBusy, Order: someOrder, PaymentKey: "key_2", RetryAfter: 1})
		got := s.send(post(payments, withVisa))
		p := got.problem()
		require.Equal(t, 503, got.status)
		require.True(t, p.SafeNewKey)
		require.Equal(t, "key_2", p.PaymentKey)
	})

	t.Run("TheOrderOfThePath", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.fails(idempotency.ErrOverloaded)
		require.Equal(t, someOrder, s.send(post(payments, withVisa)).problem().Order)
	})

	t.Run("RetryAfterIsWholeSecondsAndAtLeastOne", func(t *testing.T) {
		t.Parallel()
		for d, want := range map[time.Duration]string{
			0: "1", time.Nanosecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", 59500 * time.Millisecond: "60", -time.Second: "1",
		} {
			s := open(t)
			s.fake.fails(&checkout.ConflictError{Err: &idempotency.InProgressError{RetryAfter: d}, Order: someOrder})
			got := s.send(post(payments, withVisa))
			require.Equal(t, 409, got.status)
			require.Equal(t, want, got.header.Get("Retry-After"), d)
		}
	})

	t.Run("AReusedKeySaysWhatBecameOfItsRequest", func(t *testing.T) {
		t.Parallel()
		for name, row := range map[string]struct {
			err    idempotency.ReusedError
			safe   bool
			detail string
		}{
			"running":   {idempotency.ReusedError{Status: idempotency.InProgress}, false, "is running, or its outcome is not known yet"},
			"retryable": {idempotency.ReusedError{Status: idempotency.FailedRetryable}, true, "was not carried out"},
			"accepted":  {idempotency.ReusedError{Status: idempotency.Completed, ResponseStatus: 202}, false, "its money may still come"},
			"declined":  {idempotency.ReusedError{Status: idempotency.Completed, ResponseStatus: 402}, true, "was answered with 402"},
			"paid":      {idempotency.ReusedError{Status: idempotency.Completed, ResponseStatus: 201}, true, "was answered with 201"},
		} {
			s := open(t)
			s.fake.fails(&checkout.ConflictError{Err: &row.err, Order: someOrder, PaymentKey: "key_2"})
			got := s.send(post(payments, withVisa))
			p := got.problem()
			require.Equal(t, 422, got.status, name)
			require.Equal(t, row.safe, p.SafeNewKey, name)
			require.Equal(t, row.safe, p.PaymentKey == "key_2", name)
			require.Contains(t, p.Detail, row.detail, name)
		}
	})

	t.Run("AMalformedKeySaysWhy", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		p := s.send(post(payments, withVisa, key(strings.Repeat("x", 256)))).problem()
		require.Contains(t, p.Detail, "It is 256 bytes long, and 255 is the most. Send one key")
	})
}

// TestStrangersAreToldNothing: an error of ours is told by its id, and its text
// stands in the log beside that id.
func TestStrangersAreToldNothing(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*shop){
		"an error": func(s *shop) { s.fake.fails(errors.New("dial 10.0.0.7:5432: pg_password=hunter2")) },
		"a panic": func(s *shop) {
			s.fake.answer = func() (idempotency.Response, error) { panic("dial 10.0.0.7:5432: pg_password=hunter2") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			fail(s)
			got := s.send(post(payments, withVisa))
			p := got.problem()
			require.Equal(t, 500, got.status)
			require.Equal(t, "internal", p.Code)
			require.False(t, p.SafeNewKey, "nobody knows what happened")
			require.Equal(t, "1", got.header.Get("Retry-After"))
			require.NotContains(t, string(got.body), "hunter2")
			require.Contains(t, s.log.String(), "hunter2")
			require.Contains(t, s.log.String(), got.header.Get("X-Request-Id"))

			page := s.send(form(payments, "payment_method=pm_card_visa&idempotency_key=k"))
			require.Equal(t, 500, page.status)
			require.NotContains(t, page.page(), "hunter2")
			require.Contains(t, page.page(), page.header.Get("X-Request-Id"))
			require.Contains(t, page.page(), "/orders/"+someOrder, "the way to the order")
		})
	}

	t.Run("a read", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		s.fake.readErr = errors.New("hunter2")
		for _, path := range []string{"/", "/courses/" + slug, "/orders", "/orders/" + someOrder} {
			got := s.send(get(path))
			require.Equal(t, 500, got.status, path)
			require.NotContains(t, got.problem().Detail, "key")
			require.NotContains(t, string(got.body), "hunter2")
			require.Equal(t, 500, s.send(get(path, fromBrowser)).status, path)
		}
	})
}

// TestAClientThatHangsUpIsNoFaultOfOurs: it is logged, and wakes nobody.
func TestAClientThatHangsUpIsNoFaultOfOurs(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.fake.readErr = fmt.Errorf("reading the orders: %w", context.Canceled)
	s.send(get("/orders"))
	require.NotContains(t, s.log.String(), `"level":"ERROR"`)
}

func TestUnknownAddresses(t *testing.T) {
	t.Parallel()
	s := open(t)

	for _, path := range []string{"/nothing", "/orders/", "/orders/a/b/c", "/courses", "/courses/a/lessons", "/payments/a", "//", "/healthz/x", "/docs"} {
		got := s.send(get(path))
		require.Equal(t, 404, got.status, path)
		require.Equal(t, "not_found", got.problem().Code, path)
	}

	for _, row := range []struct{ method, path, allow string }{
		{http.MethodPost, "/", "GET, HEAD"},
		{http.MethodDelete, "/orders", "GET, HEAD, POST"},
		{http.MethodPut, "/orders/" + someOrder, "GET, HEAD"},
		{http.MethodGet, payments, "POST"},
		{http.MethodHead, refunds, "POST"},
		{http.MethodGet, "/session", "POST"},
		{http.MethodPost, "/openapi.json", "GET, HEAD"},
		{http.MethodPatch, "/healthz", "GET, HEAD"},
	} {
		got := s.send(request(row.method, row.path, "", nil))
		require.Equal(t, 405, got.status, row.path)
		require.Equal(t, "method_not_allowed", got.problem().Code)
		for method := range strings.SplitSeq(row.allow, ", ") {
			require.Contains(t, got.header.Get("Allow"), method, row.path)
		}
	}
}
