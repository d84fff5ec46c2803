package stripesim

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type paramKind int

const (
	text       paramKind = iota
	integer              // at least 1 unless min says otherwise
	boolean              // true, false
	choice               // one of choices
	link                 // an absolute URL
	texts                // a list of texts
	object               // fields
	metadata             // names and values of the caller's own
	period               // a timestamp, or gt, gte, lt, lte
	unimitated           // Stripe takes it, the local Stripe does not: refused rather than silently ignored
)

// param is one parameter an endpoint takes.
type param struct {
	name     string
	kind     paramKind
	required bool
	clears   bool // an empty value unsets it
	choices  []string
	max      int // largest number of characters; 0 is no limit
	min      int64
	fields   []param
}

// params are the parameters of a call after validation.
type params struct{ *node }

// check validates what was sent against what the endpoint takes. Everything it answers is a 400 that is not stored.
func check(sent *node, takes []param, prefix string) *apiError {
	for _, name := range sent.names() {
		i := slices.IndexFunc(takes, func(p param) bool { return p.name == name })
		if i < 0 {
			full := qualify(prefix, name)
			return refuse("parameter_unknown", full, "Received unknown parameter: %s", full)
		}
		if err := takes[i].check(sent.parts[name], qualify(prefix, name)); err != nil {
			return err
		}
	}
	for _, p := range takes {
		if p.required && sent.at(p.name) == nil {
			full := qualify(prefix, p.name)
			return refuse("parameter_missing", full, "Missing required param: %s.", full)
		}
	}
	return nil
}

func qualify(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "[" + name + "]"
}

func (p param) check(n *node, full string) *apiError {
	switch p.kind {
	case unimitated:
		return refuse("", full, "The local Stripe does not imitate this parameter: %s", full)
	case object:
		if n.leaf {
			return refuse("", full, "Invalid object")
		}
		return check(n, p.fields, full)
	case metadata:
		return checkMetadata(n, full)
	case texts:
		return p.checkTexts(n, full)
	case period:
		return checkPeriod(n, full)
	}
	if !n.leaf {
		return refuse("", full, "Invalid string: %s was sent with parts", full)
	}
	if !utf8.ValidString(n.value) || strings.ContainsRune(n.value, 0) {
		return refuse("", full, "Invalid string: %s is not valid UTF-8", full)
	}
	if n.value == "" {
		if p.clears {
			return nil
		}
		return refuse("parameter_invalid_empty", full, "You passed an empty string for '%s'. We assume empty values are an attempt "+
			"to unset a parameter; however '%s' cannot be unset. You should remove '%s' from your request or supply a non-empty value.",
			full, full, full)
	}
	return p.checkScalar(n.value, full)
}

func (p param) checkScalar(value, full string) *apiError {
	switch p.kind {
	case integer:
		least := max(p.min, 1)
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil || strings.HasPrefix(value, "+") {
			return refuse("parameter_invalid_integer", full, "Invalid integer: %s", value)
		}
		if number < least {
			return refuse("parameter_invalid_integer", full, "This value must be greater than or equal to %d.", least)
		}
	case boolean:
		if value != "true" && value != "false" {
			return refuse("", full, "Invalid boolean: %s", value)
		}
	case choice:
		if !slices.Contains(p.choices, value) {
			return refuse("", full, "Invalid %s: must be one of %s", full, strings.Join(p.choices, ", "))
		}
	case link:
		u, err := url.Parse(value)
		if err != nil || u.Scheme == "" || u.Host == "" {
			return refuse("url_invalid", full, "Not a valid URL")
		}
	}
	if p.max > 0 && utf8.RuneCountInString(value) > p.max {
		return refuse("", full, "Invalid string: %s; must be at most %d characters", full, p.max)
	}
	return nil
}

func (p param) checkTexts(n *node, full string) *apiError {
	if n.leaf {
		if n.value == "" {
			return nil // how stripe-go sends an empty list
		}
		return refuse("", full, "Invalid array")
	}
	for _, name := range n.names() {
		if _, err := strconv.Atoi(name); err != nil {
			return refuse("", full, "Invalid array")
		}
		element := param{kind: text}
		if p.choices != nil {
			element = param{kind: choice, choices: p.choices}
		}
		if err := element.check(n.parts[name], qualify(full, name)); err != nil {
			return err
		}
	}
	return nil
}

// The limits of metadata: https://docs.stripe.com/api/metadata.
const (
	maxMetadataKeys  = 50
	maxMetadataKey   = 40
	maxMetadataValue = 500
)

func checkMetadata(n *node, full string) *apiError {
	if n.leaf {
		if n.value == "" {
			return nil // unsets all
		}
		return refuse("", full, "Invalid object")
	}
	if len(n.parts) > maxMetadataKeys {
		return refuse("", full, "Metadata can have up to %d keys, but you passed in %d.", maxMetadataKeys, len(n.parts))
	}
	for name, part := range n.parts {
		if utf8.RuneCountInString(name) > maxMetadataKey {
			return refuse("", qualify(full, name), "Metadata keys can have up to %d characters.", maxMetadataKey)
		}
		if err := (param{kind: text, clears: true}).check(part, qualify(full, name)); err != nil {
			return err
		}
		if utf8.RuneCountInString(part.value) > maxMetadataValue {
			return refuse("", qualify(full, name), "Metadata values can have up to %d characters, but you passed in a value that is %d characters.",
				maxMetadataValue, utf8.RuneCountInString(part.value))
		}
	}
	return nil
}

func checkPeriod(n *node, full string) *apiError {
	timestamp := param{kind: integer}
	if n.leaf {
		return timestamp.check(n, full)
	}
	for name, part := range n.parts {
		if !slices.Contains([]string{"gt", "gte", "lt", "lte"}, name) {
			return refuse("parameter_unknown", qualify(full, name), "Received unknown parameter: %s", qualify(full, name))
		}
		if err := timestamp.check(part, qualify(full, name)); err != nil {
			return err
		}
	}
	return nil
}

// has tells whether the parameter was sent with a value.
func (p params) has(path ...string) bool {
	n := p.at(path...)
	return n != nil && (!n.leaf || n.value != "")
}

// text returns the value sent, "" without one.
func (p params) text(path ...string) string {
	if n := p.at(path...); n != nil {
		return n.value
	}
	return ""
}

// optional returns the value sent, nil when it is absent or empty: a nullable text of an object.
func (p params) optional(path ...string) *string {
	if value := p.text(path...); value != "" {
		return &value
	}
	return nil
}

func (p params) integer(path ...string) int64 {
	number, _ := strconv.ParseInt(p.text(path...), 10, 64) // validated by check
	return number
}

func (p params) boolean(path ...string) bool { return p.text(path...) == "true" }

func (p params) texts(path ...string) []string {
	n := p.at(path...)
	if n == nil {
		return nil
	}
	var values []string
	for _, name := range n.names() {
		values = append(values, n.parts[name].value)
	}
	return values
}

// merged returns old with the metadata that was sent: an empty value removes its name, an empty whole removes all.
func (p params) merged(old map[string]string) map[string]string {
	merged := map[string]string{}
	sent := p.at("metadata")
	if sent == nil || !sent.leaf {
		for name, value := range old {
			merged[name] = value
		}
	}
	if sent != nil {
		for name, part := range sent.parts {
			if part.value == "" {
				delete(merged, name)
			} else {
				merged[name] = part.value
			}
		}
	}
	return merged
}

// within tells whether a time lies in the period sent; always, when none was.
func (p params) within(name string, at int64) bool {
	n := p.at(name)
	if n == nil {
		return true
	}
	if n.leaf {
		return at == p.integer(name)
	}
	for bound := range n.parts {
		limit := p.integer(name, bound)
		switch bound {
		case "gt":
			if at <= limit {
				return false
			}
		case "gte":
			if at < limit {
				return false
			}
		case "lt":
			if at >= limit {
				return false
			}
		case "lte":
			if at > limit {
				return false
			}
		}
	}
	return true
}

// seconds is a time as Stripe writes it.
func seconds(t time.Time) int64 { return t.Unix() }
