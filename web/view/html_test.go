package view_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// parse reads a page as a browser does.
func parse(t *testing.T, page string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	return root
}

// elements returns the elements under root for which the condition holds, in document order. What lies in a template is
// not on the page until the script puts it there, so it is found from the template alone.
func elements(root *html.Node, holds func(*html.Node) bool) []*html.Node {
	var found []*html.Node
	for n := range root.ChildNodes() {
		if n.Type != html.ElementNode {
			continue
		}
		if holds(n) {
			found = append(found, n)
		}
		if n.Data != "template" {
			found = append(found, elements(n, holds)...)
		}
	}
	return found
}

func named(name string) func(*html.Node) bool {
	return func(n *html.Node) bool { return n.Data == name }
}

func withClass(class string) func(*html.Node) bool {
	return func(n *html.Node) bool { return hasClass(n, class) }
}

func hasClass(n *html.Node, class string) bool {
	return slices.Contains(strings.Fields(attr(n, "class")), class)
}

// attr returns the value of an attribute, or "" if there is none.
func attr(n *html.Node, name string) string {
	value, _ := lookup(n, name)
	return value
}

func lookup(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// text returns what can be read in an element, with single spaces.
func text(root *html.Node) string {
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func only(t *testing.T, found []*html.Node) *html.Node {
	t.Helper()
	require.Len(t, found, 1)
	return found[0]
}
