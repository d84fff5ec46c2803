package idempotency

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
)

// Fingerprint identifies a request: SHA-256 over its operation and the
// canonical form of its declared fields.
type Fingerprint [sha256.Size]byte

// NewFingerprint hashes the operation (method, and path with its parameters)
// and the canonical JSON (RFC 8785) of fields, which must encode to a JSON
// object of the fields that the operation declares, after validation. The order
// of members, white space, and 4900, 4900.0 or 4.9e3 make no difference;
// hashing the bytes as they came would refuse an honest retry. Numbers beyond
// 2^53 are not told apart (RFC 8785, section 3.2.2.3).
//
// It returns an error only if fields cannot be encoded.
func NewFingerprint(operation string, fields any) (Fingerprint, error) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("encoding the fields of %s: %w", operation, err)
	}
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("canonicalising the fields of %s: %w", operation, err)
	}
	// Canonical JSON holds no line feed, so no two pairs hash the same text.
	return sha256.Sum256(append([]byte(operation+"\n"), canonical...)), nil
}
