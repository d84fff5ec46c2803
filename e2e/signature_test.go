package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSignature: who may tell the shop something. Two secrets are active while
// one is being rolled, and a delivery may be signed with both.
func TestSignature(t *testing.T) {
	t.Parallel()
	const old = "whsec_0ldSecret0ldSecret0ldSecret0ldSe"
	s := newStage(t, flows[len(flows)-1])
	s.shop.kill(t)
	s.shop = s.reopen(t, s.shop, append(s.through, "STRIPE_WEBHOOK_SECRET="+old+","+s.mailbox.secret)...)

	sign := func(body []byte, secret string, at time.Time) (stamp, signature string) {
		stamp = strconv.FormatInt(at.Unix(), 10)
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = fmt.Fprintf(mac, "%s.%s", stamp, body)
		return "t=" + stamp, hex.EncodeToString(mac.Sum(nil))
	}
	post := func(t *testing.T, body []byte, header string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, s.shop.url+"/webhooks/stripe", bytes.NewReader(body))
		require.NoError(t, err)
		if header != "" {
			r.Header.Set("Stripe-Signature", header)
		}
		answer, err := plainClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	now := time.Now()
	good := s.newTrial(t).event.body
	stamp, right := sign(good, s.mailbox.secret, now)
	_, rightToo := sign(good, old, now)
	_, wrong := sign(good, "whsec_nobody", now)
	_, early := sign(good, s.mailbox.secret, now.Add(-6*time.Minute))
	_, late := sign(good, s.mailbox.secret, now.Add(10*time.Minute))

	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, good, "", "        "))
	for what, given := range map[string]struct {
		body   []byte
		header string
	}{
		"no header":                   {good, ""},
		"no signature":                {good, stamp},
		"only an old scheme":          {good, stamp + ",v0=" + right},
		"another's signature":         {good, stamp + ",v1=" + wrong},
		"signed six minutes ago":      {good, fmt.Sprintf("t=%d,v1=%s", now.Add(-6*time.Minute).Unix(), early)},
		"signed in the future":        {good, fmt.Sprintf("t=%d,v1=%s", now.Add(10*time.Minute).Unix(), late)},
		"two times, one of them good": {good, stamp + fmt.Sprintf(",t=%d,v1=%s", now.Add(-6*time.Minute).Unix(), early)},
		"a body that was touched":     {indented.Bytes(), stamp + ",v1=" + right},
	} {
		require.Equal(t, http.StatusBadRequest, post(t, given.body, given.header), what)
	}
	require.Zero(t, sql[int](t, s.deployment, `SELECT count(*) FROM events`), "nothing of it was believed")

	for what, header := range map[string]string{
		"the new secret":                   stamp + ",v1=" + right,
		"the old secret":                   stamp + ",v1=" + rightToo,
		"both, the right one first":        stamp + ",v1=" + right + ",v1=" + wrong,
		"both, the right one last":         stamp + ",v1=" + wrong + ",v1=" + right,
		"an old scheme beside the new one": stamp + ",v0=" + wrong + ",v1=" + right,
	} {
		require.Equal(t, http.StatusOK, post(t, good, header), what)
	}
	require.Equal(t, 1, sql[int](t, s.deployment, `SELECT count(*) FROM events`))

	for what, given := range map[string]struct {
		body   string
		status int
	}{
		"a kind that nobody knows":      {`{"id":"evt_1","object":"event","type":"moon.phase","livemode":false,"data":{"object":{}}}`, http.StatusOK},
		"a large one":                   {`{"id":"evt_2","object":"event","type":"moon.phase","livemode":false,"data":{"object":{"x":"` + strings.Repeat("x", 300<<10) + `"}}}`, http.StatusOK},
		"one that is far too large":     {`{"x":"` + strings.Repeat("x", 5<<20) + `"}`, http.StatusRequestEntityTooLarge},
		"a right signature over rubble": {`{"id":`, http.StatusBadRequest},
	} {
		body := []byte(given.body)
		stamp, signature := sign(body, s.mailbox.secret, now)
		require.Equal(t, given.status, post(t, body, stamp+",v1="+signature), what)
	}
}
