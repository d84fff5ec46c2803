package view

import "slices"

// Fact is a label and its value, a row of a list of facts.
type Fact struct {
	Label   string
	Value   string
	Machine bool   // the value is a machine's word (an id, a key), set in mono
	Total   bool   // the sum that the rows above add up to
	Stamp   string // RFC 3339, if the value is a time
}

// given keeps the facts that have a value.
func given(facts ...Fact) []Fact {
	return slices.DeleteFunc(facts, func(fact Fact) bool { return fact.Value == "" })
}
