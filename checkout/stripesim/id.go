package stripesim

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// random returns n random letters and digits.
func random(n int) string {
	text := make([]byte, 0, n)
	buf := make([]byte, 2*n)
	for len(text) < n {
		_, _ = rand.Read(buf) // never fails: crypto/rand ends the program instead
		for _, b := range buf {
			// 248 is the largest multiple of 62 in a byte; what lies above would favour the first letters.
			if b < 248 && len(text) < n {
				text = append(text, base62[b%62])
			}
		}
	}
	return string(text)
}

// newID returns an id in the shape of Stripe's: a prefix, the generation 3 (1 for objects that are not payments), 23 letters.
func newID(prefix string) string {
	generation := "3"
	switch prefix {
	case "pm", "we", "du", "ctoken", "pmc":
		generation = "1"
	}
	return prefix + "_" + generation + random(23)
}

// accountID names the account behind a secret key, so that no key is ever written to the journal.
func accountID(secretKey string) string {
	sum := sha256.Sum256([]byte("account of " + secretKey))
	return "acct_1" + hex.EncodeToString(sum[:])[:15]
}
