package web

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"payonce/idempotency"
)

// maxBody is the most a POST may carry, in bytes. The declared fields need a
// few hundred; the rest is room for what extensions add to a form.
const maxBody = 16 << 10

// The names of the key, as a program and as a form spells it.
const (
	keyHeader = "Idempotency-Key"
	keyField  = "idempotency_key"
)

// submission is what a POST says, a form or JSON: the same fields either way.
type submission struct {
	form   bool
	key    idempotency.Key
	fields map[string]value
}

// value is one field as it was sent. A form knows only text; JSON tells text
// from numbers, and so must who reads it.
type value struct {
	text   string
	number bool
}

// readSubmission reads the body and the key. declared are the fields that this
// request may have; it is for their readers to say which it must have.
//
// Nothing that it refuses was stored, so every error of it may be answered by
// sending the same key again.
func readSubmission(c echo.Context, declared ...string) (submission, error) {
	return readTyped(c, declared, nil)
}

// readTyped is readSubmission with fields that a form alone may have: what a
// person types, and a program has no use for.
func readTyped(c echo.Context, declared, typed []string) (submission, error) {
	r := c.Request()
	form, err := isForm(r)
	if err != nil {
		return submission{}, err
	}
	body, err := readBody(c.Response().Writer, r)
	if err != nil {
		return submission{}, err
	}
	s := submission{form: form}
	var keys []string
	if form {
		s.fields, keys, err = readForm(body, slices.Concat(declared, typed))
	} else {
		s.fields, err = readJSON(body, declared)
	}
	if err != nil {
		return submission{}, err
	}
	if s.key, err = idempotency.ParseKey(r.Header.Values(keyHeader), keys); err != nil {
		return submission{}, &refusal{err: err, field: s.keyName()}
	}
	visitOf(c).key = shortened(s.key)
	return s, nil
}

func (s submission) keyName() string {
	if s.form {
		return keyField
	}
	return keyHeader
}

// isForm reads the media type: a form or JSON, in UTF-8 and not compressed.
// multipart/form-data is refused: it is for files, and there are none.
func isForm(r *http.Request) (bool, error) {
	refused := &refusal{err: errMediaType, field: echo.HeaderContentType}
	types := r.Header.Values(echo.HeaderContentType)
	if len(types) != 1 {
		return false, refused
	}
	name, params, err := mime.ParseMediaType(types[0])
	if err != nil {
		return false, refused
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return false, refused
	}
	if coding := r.Header.Get(echo.HeaderContentEncoding); coding != "" && !strings.EqualFold(coding, "identity") {
		return false, &refusal{err: errMediaType, field: echo.HeaderContentEncoding, detail: "Send the body without a content coding."}
	}
	switch name {
	case echo.MIMEApplicationForm:
		return true, nil
	case echo.MIMEApplicationJSON:
		return false, nil
	}
	return false, refused
}

// readBody needs the server's own writer: only with it does MaxBytesReader
// close the connection of a client that goes on sending.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &refusal{err: errTooLarge, field: "body"}
	case err != nil:
		return nil, invalid("body", "The body could not be read to its end. Send it again.")
	}
	return body, nil
}

// readForm reads the declared fields of a form and every value of its key.
// Other fields are ignored, because scripts and extensions add them.
func readForm(body []byte, declared []string) (fields map[string]value, keys []string, err error) {
	sent, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, nil, invalid("body", "The form is not encoded as application/x-www-form-urlencoded asks.")
	}
	fields = map[string]value{}
	for _, name := range declared {
		switch values := sent[name]; len(values) {
		case 0:
		case 1:
			fields[name] = value{text: values[0]}
		default:
			return nil, nil, invalid(name, "Send the field once.")
		}
	}
	return fields, sent[keyField], nil
}

// firstParameter gives the name of the first parameter of a query string, to be
// named in the refusal.
func firstParameter(query string) string {
	name, _, _ := strings.Cut(query, "&")
	name, _, _ = strings.Cut(name, "=")
	if plain, err := url.QueryUnescape(name); err == nil && plain != "" {
		return named(plain)
	}
	return "query"
}

// named makes a field's name fit to be sent back: it is the client's own text,
// of any length.
func named(name string) string {
	const most = 64
	if len(name) > most {
		name = name[:most]
		for !utf8.ValidString(name) && len(name) > most-utf8.UTFMax {
			name = name[:len(name)-1]
		}
		name += "..."
	}
	return strings.ToValidUTF8(name, "?")
}
