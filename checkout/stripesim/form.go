package stripesim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxNesting bounds how deep brackets may go: nothing Stripe takes comes near it, and a hostile body stays cheap.
const maxNesting = 8

var errMalformedForm = errors.New("malformed form")

// node is a part of one request's parameters: a value, or named parts. In a list the names are the numbers
// 0, 1, 2, whether they were sent as `a[0]` or as `a[]`.
type node struct {
	value string
	leaf  bool
	parts map[string]*node
}

// parseForm reads parameters in Stripe's encoding: `a=1`, `a[b]=1`, `a[0]=1`, `a[]=1`, with the brackets percent-encoded
// or not. Of a scalar sent twice the last counts, as in Stripe's own parser. It returns errMalformedForm.
func parseForm(encoded string) (*node, error) {
	root := &node{parts: map[string]*node{}}
	for pair := range strings.SplitSeq(encoded, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return nil, fmt.Errorf("unescaping a name: %w", errMalformedForm)
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return nil, fmt.Errorf("unescaping %q: %w", name, errMalformedForm)
		}
		path, err := splitName(name)
		if err != nil {
			return nil, err
		}
		if err := root.put(path, value); err != nil {
			return nil, fmt.Errorf("placing %q: %w", name, err)
		}
	}
	return root, nil
}

// splitName turns `a[b][c]` into a, b, c.
func splitName(name string) ([]string, error) {
	head, rest, nested := strings.Cut(name, "[")
	if head == "" || strings.Contains(head, "]") {
		return nil, fmt.Errorf("reading name %q: %w", name, errMalformedForm)
	}
	path := []string{head}
	for nested {
		var part string
		var closed bool
		part, rest, closed = strings.Cut(rest, "]")
		if !closed || strings.Contains(part, "[") || len(path) == maxNesting {
			return nil, fmt.Errorf("reading name %q: %w", name, errMalformedForm)
		}
		path = append(path, part)
		if rest == "" {
			break
		}
		if rest[0] != '[' {
			return nil, fmt.Errorf("reading name %q: %w", name, errMalformedForm)
		}
		rest = rest[1:]
	}
	return path, nil
}

func (n *node) put(path []string, value string) error {
	at := n
	for _, name := range path {
		if at.leaf {
			return errMalformedForm
		}
		if name == "" {
			name = strconv.Itoa(len(at.parts))
		}
		if at.parts == nil {
			at.parts = map[string]*node{}
		}
		next, found := at.parts[name]
		if !found {
			next = &node{}
			at.parts[name] = next
		}
		at = next
	}
	if at.parts != nil {
		return errMalformedForm
	}
	at.leaf, at.value = true, value
	return nil
}

// at returns the part under a path of names, nil when it was not sent.
func (n *node) at(path ...string) *node {
	for _, name := range path {
		if n == nil {
			return nil
		}
		n = n.parts[name]
	}
	return n
}

// names returns the names of the parts: numbers in their order, then the rest in the alphabet's.
func (n *node) names() []string {
	names := make([]string, 0, len(n.parts))
	for name := range n.parts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		i, errA := strconv.Atoi(a)
		j, errB := strconv.Atoi(b)
		if errA == nil && errB == nil {
			return i - j
		}
		return strings.Compare(a, b)
	})
	return names
}

// fingerprint identifies the parameters whatever the order and the encoding they were sent in. Lengths stand before
// the texts, so that no two different trees write the same bytes.
func (n *node) fingerprint() string {
	var b strings.Builder
	n.write(&b)
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

func (n *node) write(b *strings.Builder) {
	if n.leaf {
		fmt.Fprintf(b, "=%d:%s", len(n.value), n.value)
		return
	}
	b.WriteByte('{')
	for _, name := range n.names() {
		fmt.Fprintf(b, "%d:%s", len(name), name)
		n.parts[name].write(b)
	}
	b.WriteByte('}')
}
