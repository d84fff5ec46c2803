package view

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// Script is what checkout.js has to be told.
type Script struct {
	// Keep is how long a stored submission may be sent again: half of the retention, so that its key is surely remembered
	// when it arrives.
	Keep time.Duration
	// Timeout is how long to wait for one answer: more than the longest checkout takes.
	Timeout time.Duration
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// standing is the state as the order's own JSON has it; see standing in submission.js.
func (s CheckingState) standing() string {
	switch s {
	case Processing, RequiresAction, Closing:
		return string(s)
	}
	return "pending"
}

// stopping are the codes after which a page cannot pay any more; see stop in submission.js.
var stopping = []string{
	"key_missing", "key_malformed", "invalid_request", "no_session", "cross_site", "not_found", "method_not_allowed",
	"too_large", "media_type", "key_reused",
}

// decline is a reason of a bank, for the script to choose from.
type decline struct{ Code, Words string }

// declines are all reasons that may be told; the last one, without a code, is for all others.
func declines() []decline {
	var all []decline
	for _, code := range slices.Sorted(maps.Keys(declineWords)) {
		all = append(all, decline{code, declineWords[code]})
	}
	return append(all, decline{"", DeclineWords("")})
}
