package idempotency

import "bytes"

// Response is an answer as it is stored under a key, sent, and replayed: the
// same status and the same bytes each time. Bytes, not jsonb: a column that
// parses what it stores would answer a replay with other bytes than the first
// answer.
//
// Body must hold no secret and no personal data: it lives as long as the key.
type Response struct {
	// Status is the HTTP status, 200 to 599.
	Status int
	// Type is the media type of Body, such as application/json.
	Type string
	Body []byte
	// Replayed is true if this call did not produce the answer but read it
	// from the key's row. It is not stored.
	Replayed bool
}

// equal is true if both answers are the same to a client.
func (r Response) equal(other Response) bool {
	return r.Status == other.Status && r.Type == other.Type && bytes.Equal(r.Body, other.Body)
}

// stored gives the body as it is stored: no body is an answer too, NULL is none.
func (r Response) stored() []byte {
	if r.Body == nil {
		return []byte{}
	}
	return r.Body
}
