package view

import (
	"regexp"
	"strings"

	"github.com/a-h/templ"
)

// codeLine is one line of a listing: its pieces, and whether it is the line the text is about.
type codeLine struct {
	mark   string // "", "fault" or "cure"
	pieces []codePiece
}

// codePiece is a run of text of one kind: "" (plain), "word" (a keyword) or "note" (a comment).
type codePiece struct {
	kind, text string
}

// Markers at the start of a line say that the text is about this line. They are taken off before it is shown.
const (
	faultMarker = "!! "
	cureMarker  = "=> "
)

// codeTokens finds, in one alternation per language, what a listing sets apart: comments (group 1), then strings
// (group 2, matched only so that nothing inside them is taken for a keyword), then keywords (group 3).
var codeTokens = map[string]*regexp.Regexp{
	"sql": regexp.MustCompile(`(--.*$)|('(?:[^']|'')*')|\b(` +
		`ADD|ALTER|AND|AS|ASC|BEGIN|BETWEEN|BY|CASE|CHECK|COMMIT|CONFLICT|CONSTRAINT|CREATE|DEFAULT|DELETE|DESC|DISTINCT|DO|` +
		`ELSE|END|EXISTS|FOR|FROM|GROUP|HAVING|IF|IN|INDEX|INSERT|INTO|IS|ISOLATION|JOIN|KEY|LEVEL|LIMIT|LOCK|LOCKED|NO|NOT|NOTHING|` +
		`NULL|ON|OR|ORDER|PRIMARY|READ|REFERENCES|REPEATABLE|RETURNING|ROLLBACK|SELECT|SERIALIZABLE|SET|SHARE|SKIP|TABLE|THEN|` +
		`TRANSACTION|UNIQUE|UPDATE|USING|VALUES|WHEN|WHERE|WITH)\b`),
	"go": regexp.MustCompile("(//.*$)|(\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)|" + `\b(` +
		`break|case|chan|const|continue|defer|default|else|fallthrough|for|func|go|goto|if|import|interface|map|package|range|` +
		`return|select|struct|switch|type|var)\b`),
	"sh":   regexp.MustCompile(`((?:^|\s)#.*$)|('[^']*'|"(?:[^"\\]|\\.)*")|^(\$)\s`),
	"http": regexp.MustCompile(`($^)|($^)|(?:^HTTP/[0-9.]+ |"code": ?|^)([0-9]{3} [A-Z].*|"\w+"|(?:GET|POST|PUT|DELETE) /\S*)`),
}

// readCode cuts a listing into lines and pieces. A language it does not know is shown as it is.
func readCode(lang, text string) []codeLine {
	tokens := codeTokens[lang]
	var lines []codeLine
	for raw := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		var line codeLine
		if rest, ok := strings.CutPrefix(raw, faultMarker); ok {
			line.mark, raw = "fault", rest
		} else if rest, ok := strings.CutPrefix(raw, cureMarker); ok {
			line.mark, raw = "cure", rest
		}
		line.pieces = readPieces(tokens, raw)
		lines = append(lines, line)
	}
	return lines
}

func readPieces(tokens *regexp.Regexp, raw string) []codePiece {
	if tokens == nil {
		return []codePiece{{text: raw}}
	}
	var pieces []codePiece
	from := 0
	for _, at := range tokens.FindAllStringSubmatchIndex(raw, -1) {
		kind, start, end := "", at[0], at[1]
		switch {
		case at[2] >= 0:
			kind = "note"
		case at[6] >= 0:
			kind, start, end = "word", at[6], at[7]
		}
		if kind == "" || start == end {
			continue
		}
		if start > from {
			pieces = append(pieces, codePiece{text: raw[from:start]})
		}
		pieces = append(pieces, codePiece{kind: kind, text: raw[start:end]})
		from = end
	}
	if from < len(raw) {
		pieces = append(pieces, codePiece{text: raw[from:]})
	}
	return pieces
}

func codeLabel(lang string) string {
	switch lang {
	case "sql":
		return "SQL"
	case "go":
		return "Go"
	case "sh":
		return "Terminal"
	case "http":
		return "HTTP"
	}
	return "Listing"
}

// listing writes the lines of a listing. It is plain Go because white space counts here, and templ tidies white space.
func listing(lang, text string) templ.Component {
	element := map[string]string{"word": "b", "note": "i"}
	var out strings.Builder
	for i, line := range readCode(lang, text) {
		if i > 0 {
			out.WriteByte('\n')
		}
		if line.mark != "" {
			out.WriteString(`<mark class="` + line.mark + `">`)
		}
		for _, piece := range line.pieces {
			words := templ.EscapeString(piece.text)
			if e, ok := element[piece.kind]; ok {
				words = "<" + e + ">" + words + "</" + e + ">"
			}
			out.WriteString(words)
		}
		if line.mark != "" {
			out.WriteString(`</mark>`)
		}
	}
	return templ.Raw(out.String())
}
