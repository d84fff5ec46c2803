package view

import (
	"regexp"
	"strings"
)

// lineOfSQL is how long a line may be in half a page.
const lineOfSQL = 56

// clauses are where a long statement is broken.
var clauses = regexp.MustCompile(` (VALUES|ON CONFLICT|RETURNING|SET|WHERE|AND|FROM|FOR UPDATE|ORDER BY|LIMIT)\b`)

// wordBreaks are where a long comment is broken.
var wordBreaks = regexp.MustCompile(` \S`)

// labListing writes a variant's statements as a listing, for Code.
func labListing(lines []LabLine) string {
	var b strings.Builder
	for _, line := range lines {
		marker := ""
		switch {
		case line.Fault:
			marker = faultMarker
		case line.Cure:
			marker = cureMarker
		}
		text := line.Text
		if line.Comment {
			text = "-- " + text
		} else if !strings.HasSuffix(text, ";") {
			text += ";"
		}
		breaks, next := clauses, "  "
		if line.Comment {
			breaks, next = wordBreaks, "-- "
		}
		for i, part := range breakSQL(text, breaks) {
			if i > 0 {
				part = next + part
			}
			b.WriteString(marker + part + "\n")
		}
	}
	return b.String()
}

// breakSQL breaks a text where it is too long for one line.
func breakSQL(text string, breaks *regexp.Regexp) []string {
	if len(text) <= lineOfSQL {
		return []string{text}
	}
	var parts []string
	from := 0
	for _, at := range breaks.FindAllStringIndex(text, -1) {
		parts = append(parts, text[from:at[0]])
		from = at[0] + 1
	}
	parts = append(parts, text[from:])
	lines := []string{parts[0]}
	for _, part := range parts[1:] {
		if last := &lines[len(lines)-1]; len(*last)+1+len(part) <= lineOfSQL {
			*last += " " + part
		} else {
			lines = append(lines, part)
		}
	}
	return lines
}
