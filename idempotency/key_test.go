package idempotency

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 255)
	for name, c := range map[string]struct {
		header, field []string
		want          Key
		err           error
	}{
		"bare":                           {header: []string{"abc"}, want: "abc"},
		"quoted":                         {header: []string{`"abc"`}, want: "abc"},
		"case is kept":                   {header: []string{"ABC"}, want: "ABC"},
		"white space around":             {header: []string{" \tabc "}, want: "abc"},
		"white space around the quotes":  {header: []string{` "abc" `}, want: "abc"},
		"white space inside the quotes":  {header: []string{`" abc "`}, want: " abc "},
		"white space inside":             {header: []string{"a b"}, want: "a b"},
		"escapes":                        {header: []string{`"a\"b\\c"`}, want: `a"b\c`},
		"a backslash, bare":              {header: []string{`a\b`}, want: `a\b`},
		"punctuation":                    {header: []string{"../'%;--"}, want: "../'%;--"},
		"a UUID":                         {header: []string{`"8e03978e-40d5-43e8-bc93-6894a57f9324"`}, want: "8e03978e-40d5-43e8-bc93-6894a57f9324"},
		"255 bytes":                      {header: []string{long}, want: Key(long)},
		"255 bytes, quoted":              {header: []string{`"` + long + `"`}, want: Key(long)},
		"field":                          {field: []string{"abc"}, want: "abc"},
		"quotes in the field are text":   {field: []string{`"abc"`}, want: `"abc"`},
		"header and field the same":      {header: []string{`"abc"`}, field: []string{"abc"}, want: "abc"},
		"header twice the same":          {header: []string{"abc", `"abc"`}, want: "abc"},
		"field twice the same":           {field: []string{"abc", "abc"}, want: "abc"},
		"missing":                        {err: ErrKeyMissing},
		"blank":                          {header: []string{""}, err: ErrKeyMissing},
		"blank quoted":                   {header: []string{`""`}, err: ErrKeyMissing},
		"spaces":                         {header: []string{"   "}, err: ErrKeyMissing},
		"spaces quoted":                  {header: []string{`"   "`}, err: ErrKeyMissing},
		"blank field":                    {field: []string{""}, err: ErrKeyMissing},
		"a narrow no-break space":        {field: []string{"\u202f"}, err: ErrKeyMissing},
		"blank field beside a header":    {header: []string{"abc"}, field: []string{""}, err: ErrKeyMissing},
		"256 bytes":                      {header: []string{long + "x"}, err: ErrKeyMalformed},
		"256 bytes, quoted":              {header: []string{`"` + long + `x"`}, err: ErrKeyMalformed},
		"3,000 bytes":                    {header: []string{strings.Repeat("0123456789abcdef", 188)}, err: ErrKeyMalformed},
		"255 characters of four bytes":   {header: []string{strings.Repeat("💳", 255)}, err: ErrKeyMalformed},
		"not ASCII":                      {header: []string{"clé"}, err: ErrKeyMalformed},
		"not ASCII, quoted":              {header: []string{`"clé"`}, err: ErrKeyMalformed},
		"not UTF-8":                      {field: []string{"a\xff"}, err: ErrKeyMalformed},
		"a line feed":                    {field: []string{"a\nb"}, err: ErrKeyMalformed},
		"a NUL":                          {field: []string{"a\x00b"}, err: ErrKeyMalformed},
		"DEL":                            {field: []string{"a\x7f"}, err: ErrKeyMalformed},
		"an open quote":                  {header: []string{`"abc`}, err: ErrKeyMalformed},
		"text after the quote":           {header: []string{`"abc"def`}, err: ErrKeyMalformed},
		"a bad escape":                   {header: []string{`"a\bc"`}, err: ErrKeyMalformed},
		"parameters":                     {header: []string{`"abc";v=1`}, err: ErrKeyMalformed},
		"two strings in one line":        {header: []string{`"abc", "def"`}, err: ErrKeyMalformed},
		"the same twice in one line":     {header: []string{`"abc", "abc"`}, err: ErrKeyMalformed},
		"header twice different":         {header: []string{"abc", "def"}, err: ErrKeyMalformed},
		"header twice, case differs":     {header: []string{"abc", "ABC"}, err: ErrKeyMalformed},
		"header and field different":     {header: []string{"abc"}, field: []string{"def"}, err: ErrKeyMalformed},
		"field twice different":          {field: []string{"abc", "def"}, err: ErrKeyMalformed},
		"space differs, header to field": {header: []string{"abc"}, field: []string{"abc "}, err: ErrKeyMalformed},
	} {
		got, err := ParseKey(c.header, c.field)
		if c.err == nil {
			require.NoError(t, err, name)
		}
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, c.want, got, name)
	}
}

// Every key that is accepted can be stored.
func TestParseKeyAcceptsWhatTheSchemaDoes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	l := d.ledger(2)
	var printable strings.Builder
	for b := byte(0x20); b <= 0x7e; b++ {
		printable.WriteByte(b)
	}
	for _, text := range []string{"x", strings.Repeat("x", MaxKeyLength), printable.String()} {
		key, err := ParseKey(nil, []string{text})
		require.NoError(t, err)
		mustRecord(t, l, mustClaim(t, l, purchase(key, 4900)))
	}
}
