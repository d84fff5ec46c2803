package e2e

import (
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sdkStripe is a Stripe that leaves a challenge to Stripe.js although the shop has
// asked for a page to link to, and returns its address. Whether the real one ever
// does is not known; the shop must be able to go on.
func (s *stripe) sdkStripe(t *testing.T) string {
	t.Helper()
	to, err := url.Parse("http://" + s.addr)
	require.NoError(t, err)
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		if !strings.HasSuffix(r.In.URL.Path, "/confirm") {
			return
		}
		body, _ := io.ReadAll(r.In.Body)
		form, _ := url.ParseQuery(string(body))
		form.Del("use_stripe_sdk")
		text := form.Encode()
		r.Out.Body, r.Out.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		r.Out.Header.Set("Content-Length", strconv.Itoa(len(text)))
	}})
	t.Cleanup(server.Close)
	return server.URL
}
