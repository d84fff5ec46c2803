package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// readJSON reads one JSON object whose members are text or numbers.
//
// It walks the tokens, because decoding into a struct would accept what must
// not be accepted: encoding/json matches names without case and lets the last
// of two members win, so that {"amount":4900,"amount":1} has two meanings. For
// the same reason half a surrogate pair is refused: the decoder would make
// U+FFFD of every one, and two requests would become one.
func readJSON(body []byte, declared []string) (map[string]value, error) {
	const shape = "The body must be one JSON object."
	if !utf8.Valid(body) {
		return nil, invalid("body", "The body is not valid UTF-8.")
	}
	walk := json.NewDecoder(bytes.NewReader(body))
	walk.UseNumber()
	if first, err := walk.Token(); err != nil || first != json.Delim('{') {
		return nil, invalid("body", shape)
	}
	fields := map[string]value{}
	for walk.More() {
		token, err := walk.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, invalid("body", shape)
		}
		if !slices.Contains(declared, name) {
			return nil, invalid(named(name), "This request has no such member. It has: "+strings.Join(declared, ", ")+".")
		}
		if _, twice := fields[name]; twice {
			return nil, invalid(name, "Send the member once.")
		}
		if fields[name], err = readMember(walk, name); err != nil {
			return nil, err
		}
	}
	if _, err := walk.Token(); err != nil { // the closing brace
		return nil, invalid("body", shape)
	}
	if _, err := walk.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("body", "There is something behind the JSON object.")
	}
	return fields, nil
}

func readMember(walk *json.Decoder, name string) (value, error) {
	token, err := walk.Token()
	if err != nil {
		return value{}, invalid("body", "The body is not valid JSON.")
	}
	switch v := token.(type) {
	case string:
		if strings.ContainsRune(v, utf8.RuneError) {
			return value{}, invalid(name, "The text is not valid Unicode.")
		}
		return value{text: v}, nil
	case json.Number:
		return value{text: v.String(), number: true}, nil
	}
	return value{}, invalid(name, "The member must be text or a number.")
}
