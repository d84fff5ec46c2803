package stripesim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// sign returns the Stripe-Signature header: the time, one v1 for each active secret, and the v0 that Stripe adds in
// test mode and every receiver must ignore (https://docs.stripe.com/webhooks#verify-manually).
func sign(body []byte, secrets []string, at time.Time) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	parts := []string{"t=" + stamp}
	for _, secret := range secrets {
		parts = append(parts, "v1="+signature(body, secret, stamp))
	}
	parts = append(parts, "v0="+signature(body, "not a secret of this endpoint", stamp))
	return strings.Join(parts, ",")
}

func signature(body []byte, secret, stamp string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
