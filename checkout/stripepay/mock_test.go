package stripepay_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-mock/embedded"
	mock "github.com/stripe/stripe-mock/server"
)

// TestStripesOwnMockTakesEveryRequest judges our requests by the specification
// that Stripe publishes: an unknown, missing or mistyped parameter is its 400.
func TestStripesOwnMockTakesEveryRequest(t *testing.T) {
	t.Parallel()
	spec, err := mock.LoadSpec(embedded.OpenAPISpec, "")
	require.NoError(t, err)
	fixtures, err := mock.LoadFixtures(embedded.OpenAPIFixtures, "")
	require.NoError(t, err)
	// The version is not compared: the mock's specification is the one that
	// followed stripe-go v79's, with the same parameters here.
	stub, err := mock.NewStubServer(fixtures, spec, false, false)
	require.NoError(t, err)

	var statuses []int
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		stub.HandleRequest(answer, r)
		statuses = append(statuses, answer.Code)
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	}))
	t.Cleanup(s.Close)
	p := provider(t, s.URL)
	for name, call := range calls {
		statuses = nil
		_ = call(t.Context(), p) // the mock's answer is made of fixtures; only its status is a judgement
		require.Equal(t, []int{http.StatusOK}, statuses, name)
	}

	// The judge can say no.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/refunds", strings.NewReader(url.Values{"order": {"ord_1"}}.Encode()))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer sk_test_1")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
}
