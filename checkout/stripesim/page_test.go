package stripesim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/checkout/stripesim"
)

func TestPagesSayWhatThisIs(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{URL: "http://stripe.test"})
	status, text := read(t, c.url+"/")
	require.Equal(t, 200, status)
	require.Contains(t, text, "does_not_imitate")
	request, err := http.NewRequest(http.MethodGet, c.url+"/", nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "text/html,*/*")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(raw), "<h2>Does not imitate</h2>")

	id := c.create()
	require.Equal(t, 200, c.confirm(id, "", "pm_card_visa").status)
	receipt := c.get("/v1/payment_intents/"+id, "expand[]", "latest_charge").text("latest_charge", "receipt_url")
	require.True(t, strings.HasPrefix(receipt, "http://stripe.test/receipts/ch_"), receipt)
	status, text = read(t, c.url+strings.TrimPrefix(receipt, "http://stripe.test"))
	require.Equal(t, 200, status)
	require.Contains(t, text, "$49.00 usd")

	for _, path := range []string{"/receipts/ch_none", "/3d_secure/pi_none"} {
		status, _ = read(t, c.url+path)
		require.Equal(t, 404, status)
	}
	status, _ = c.answer(c.url+"/3d_secure/pi_none?source=x", "succeeded")
	require.Equal(t, 404, status)
	status, _ = c.answer(c.url+"/3d_secure/"+id+"?source=x", "maybe")
	require.Equal(t, 400, status)
}

func TestDocumentationNamesEveryLimit(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, text := read(t, c.url+"/")
	var about struct {
		DoesNotImitate []string `json:"does_not_imitate"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &about))
	require.NotEmpty(t, about.DoesNotImitate)
	for _, limit := range about.DoesNotImitate {
		require.Contains(t, string(doc), "//   - "+limit+"\n")
	}
}

func TestOtherSitesCannotSteer(t *testing.T) {
	t.Parallel()
	c := start(t, stripesim.Config{})
	id := c.create()
	request, err := http.NewRequest(http.MethodPost, c.url+"/_sim/reset", nil)
	require.NoError(t, err)
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 403, answer.StatusCode)
	require.Equal(t, 200, c.get("/v1/payment_intents/"+id).status)
}
