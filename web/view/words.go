package view

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

var numerals = [...]string{"No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"}

// count says how many there are, as a heading does: "Seven courses", "One lesson", "13 lessons".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	if n >= 0 && n < len(numerals) {
		return numerals[n] + " " + noun
	}
	return strconv.Itoa(n) + " " + noun
}

// capital writes the first letter large.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// suffix returns text with a separator before it, or nothing if there is no text.
func suffix(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
