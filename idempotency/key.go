package idempotency

import (
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// MaxKeyLength is the length of the longest key, in bytes. Stripe and the IETF
// draft's examples agree on 255.
const MaxKeyLength = 255

// Key is an idempotency key: 1 to 255 bytes of printable ASCII, case kept. A
// client makes one per intent, before the first send, and never from personal
// data.
type Key string

// ParseKey finds the one key of a request.
//
// header holds every value of the Idempotency-Key header: an RFC 8941 string in
// quotes, as the IETF draft (draft-ietf-httpapi-idempotency-key-header-07) has
// it, or the bare text, as Stripe has it. Quoted and bare of the same text are
// the same key. field holds every value of the form's field, always bare. The
// same key may be named in several places; two different ones are an error.
//
// It returns ErrKeyMissing if there is no key or a blank one, and an error that
// wraps ErrKeyMalformed and says why for anything else.
func ParseKey(header, field []string) (Key, error) {
	var key Key
	for _, value := range header {
		text, err := unquote(value)
		if err != nil {
			return "", err
		}
		if err := agree(&key, text); err != nil {
			return "", err
		}
	}
	for _, value := range field {
		if err := agree(&key, value); err != nil {
			return "", err
		}
	}
	if key == "" {
		return "", ErrKeyMissing
	}
	return key, nil
}

// unquote gives the text of a header's value: the content of a quoted string,
// or the value itself.
func unquote(value string) (string, error) {
	value = strings.Trim(value, " \t")
	if !strings.HasPrefix(value, `"`) {
		return value, nil
	}
	item, err := httpsfv.UnmarshalItem([]string{value})
	if err != nil {
		return "", fmt.Errorf("%w: the quoted string is not valid", ErrKeyMalformed)
	}
	text, ok := item.Value.(string)
	if !ok || len(item.Params.Names()) > 0 {
		return "", fmt.Errorf("%w: it must be one string without parameters", ErrKeyMalformed)
	}
	return text, nil
}

// agree checks text and takes it as the key, unless another one stands there.
func agree(key *Key, text string) error {
	if strings.TrimSpace(text) == "" {
		return ErrKeyMissing
	}
	if len(text) > MaxKeyLength {
		return fmt.Errorf("%w: it is %d bytes long, and 255 is the most", ErrKeyMalformed, len(text))
	}
	for i := 0; i < len(text); i++ {
		if text[i] < 0x20 || text[i] > 0x7e {
			return fmt.Errorf("%w: byte %d is not printable ASCII", ErrKeyMalformed, i+1)
		}
	}
	if *key != "" && *key != Key(text) {
		return fmt.Errorf("%w: the request names two different keys", ErrKeyMalformed)
	}
	*key = Key(text)
	return nil
}
