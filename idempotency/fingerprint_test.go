package idempotency

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	const operation = "POST /orders/42/payments"
	of := func(fields any) Fingerprint {
		fingerprint, err := NewFingerprint(operation, fields)
		require.NoError(t, err)
		return fingerprint
	}
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	base := of(map[string]any{"amount": 4900, "course": "go", "gift": nil})

	t.Run("SameRequest", func(t *testing.T) {
		t.Parallel()
		type form struct {
			Gift   *string `json:"gift"`
			Course string  `json:"course"`
			Amount int64   `json:"amount"`
		}
		for name, fields := range map[string]any{
			"another order":         raw(`{"gift":null,"course":"go","amount":4900}`),
			"white space":           raw("\n{ \"amount\" :\t4900, \"course\": \"go\" , \"gift\":null }\r\n"),
			"4900.0":                raw(`{"amount":4900.0,"course":"go","gift":null}`),
			"4.9e3":                 raw(`{"amount":4.9e3,"course":"go","gift":null}`),
			"escapes":               raw(`{"amount":4900,"course":"\u0067\u006F","gift":null}`),
			"a struct":              form{Course: "go", Amount: 4900},
			"a number kept as text": map[string]any{"amount": json.Number("4900.00"), "course": "go", "gift": nil},
			"another Go type":       map[string]any{"amount": uint16(4900), "course": "go", "gift": nil},
		} {
			require.Equal(t, base, of(fields), name)
		}
		require.Equal(t, of(map[string]any{"s": "<&>\u2028"}), of(raw(`{"s":"<&>\u2028"}`)), "what encoding/json escapes for HTML")
	})

	t.Run("AnotherRequest", func(t *testing.T) {
		t.Parallel()
		for name, fields := range map[string]any{
			"amount":             raw(`{"amount":4901,"course":"go","gift":null}`),
			"amount as text":     raw(`{"amount":"4900","course":"go","gift":null}`),
			"case":               raw(`{"amount":4900,"course":"Go","gift":null}`),
			"white space within": raw(`{"amount":4900,"course":"go ","gift":null}`),
			"no member":          raw(`{"amount":4900,"course":"go"}`),
			"one member more":    raw(`{"amount":4900,"course":"go","gift":null,"tip":0}`),
			"blank, not null":    raw(`{"amount":4900,"course":"go","gift":""}`),
			"false, not null":    raw(`{"amount":4900,"course":"go","gift":false}`),
			"a name's case":      raw(`{"Amount":4900,"course":"go","gift":null}`),
			"composed accent":    raw(`{"amount":4900,"course":"g\u006f\u0301","gift":null}`),
		} {
			require.NotEqual(t, base, of(fields), name)
		}
		require.NotEqual(t, of(map[string]any{"a": []int{1, 2}}), of(map[string]any{"a": []int{2, 1}}), "the order of a list")
		for _, other := range []string{
			"POST /orders/43/payments", "PUT /orders/42/payments", "POST /orders/42/payments/", "POST /payments/42/refunds", "",
		} {
			fingerprint, err := NewFingerprint(other, map[string]any{"amount": 4900, "course": "go", "gift": nil})
			require.NoError(t, err)
			require.NotEqual(t, base, fingerprint, other)
		}
	})

	t.Run("OperationAndFieldsDoNotRunTogether", func(t *testing.T) {
		t.Parallel()
		a, err := NewFingerprint("POST /a", map[string]any{})
		require.NoError(t, err)
		b, err := NewFingerprint("POST /a\n{}", map[string]any{})
		require.NoError(t, err)
		require.NotEqual(t, a, b)
	})

	t.Run("WhatCannotBeEncoded", func(t *testing.T) {
		t.Parallel()
		for name, fields := range map[string]any{
			"a function": map[string]any{"f": func() {}}, "infinity": map[string]any{"n": math.Inf(1)},
			"not JSON": raw(`{`), "a member twice": raw(`{"a":1,"a":2}`),
		} {
			_, err := NewFingerprint(operation, fields)
			require.ErrorContains(t, err, operation, name)
		}
	})
}
