package stripepay_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-mock/embedded"
	mock "github.com/stripe/stripe-mock/server"

	"payonce/checkout/stripepay"
	"payonce/checkout/stripesim"
)

func TestEndpointsAreListedWholeAndRemoved(t *testing.T) {
	t.Parallel()
	l := newLocal(t, stripesim.Config{})
	none, err := l.Endpoints(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)

	// More than a page, so that what comes on the second is seen.
	made := map[string]string{}
	for i := range 101 {
		e, err := l.CreateEndpoint(t.Context(), fmt.Sprintf("http://127.0.0.1:%d/webhooks/stripe", 10000+i), fmt.Sprintf("endpoint:%d", i))
		require.NoError(t, err)
		require.NoError(t, stripepay.CheckWebhookSecret(e.Secret))
		made[e.ID] = e.URL
	}
	list, err := l.Endpoints(t.Context())
	require.NoError(t, err)
	listed := map[string]string{}
	for _, e := range list {
		require.Empty(t, e.Secret, "Stripe tells it once")
		listed[e.ID] = e.URL
	}
	require.Equal(t, made, listed)

	require.NoError(t, l.DeleteEndpoint(t.Context(), list[0].ID))
	require.Error(t, l.DeleteEndpoint(t.Context(), list[0].ID))
	rest, err := l.Endpoints(t.Context())
	require.NoError(t, err)
	require.Equal(t, list[1:], rest)
}

// TestEndpointsAreReadWholeOrNotAtAll: a short list would leave an endpoint
// behind whose deliveries can only be refused.
func TestEndpointsAreReadWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"an answer without a list":   says(200, "{}"),
		"an endpoint without an id":  says(200, `{"object":"list","has_more":false,"data":[{"object":"webhook_endpoint","url":"http://a.test"}]}`),
		"an id that climbs":          says(200, `{"object":"list","has_more":false,"data":[{"id":"../charges","object":"webhook_endpoint","url":"http://a.test"}]}`),
		"a status that is no answer": says(202, `{"object":"list","has_more":false,"data":[]}`),
		"a failure":                  says(500, failure("api_error", "", pi("processing", ""))),
		"no answer":                  hangUp,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := provider(t, serve(t, answer).URL).Endpoints(t.Context())
			require.Error(t, err)
			require.Empty(t, list)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func TestStripesOwnMockTakesTheRequestsAboutEndpoints(t *testing.T) {
	t.Parallel()
	spec, err := mock.LoadSpec(embedded.OpenAPISpec, "")
	require.NoError(t, err)
	fixtures, err := mock.LoadFixtures(embedded.OpenAPIFixtures, "")
	require.NoError(t, err)
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
	_, _ = p.CreateEndpoint(t.Context(), "https://shop.test/webhooks/stripe", "endpoint:1")
	_, _ = p.Endpoints(t.Context())
	_ = p.DeleteEndpoint(t.Context(), "we_1")
	require.Equal(t, []int{200, 200, 200}, statuses)
}
