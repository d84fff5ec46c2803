package view

import (
	"net/url"
	"strings"
)

// pathOf joins segments to an absolute path, each escaped, so that no id can climb out of its place.
func pathOf(segments ...string) string {
	var b strings.Builder
	for _, segment := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(segment))
	}
	return b.String()
}
