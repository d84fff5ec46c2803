package stripepay

import "regexp"

// What we put into a path, and what comes back and ends in our database, our
// logs and our pages, is looked at here first. The SDK escapes an id into the
// path and lets an empty one through, which asks for another resource.
var (
	intentPattern   = regexp.MustCompile(`^pi_[A-Za-z0-9_]{1,250}$`)
	chargePattern   = regexp.MustCompile(`^(ch|py)_[A-Za-z0-9_]{1,250}$`)
	refundPattern   = regexp.MustCompile(`^(re|pyr)_[A-Za-z0-9_]{1,250}$`)
	disputePattern  = regexp.MustCompile(`^(du|dp)_[A-Za-z0-9_]{1,250}$`)
	endpointPattern = regexp.MustCompile(`^we_[A-Za-z0-9_]{1,250}$`)
)

func intentID(s string) bool   { return intentPattern.MatchString(s) }
func chargeID(s string) bool   { return chargePattern.MatchString(s) }
func refundID(s string) bool   { return refundPattern.MatchString(s) }
func disputeID(s string) bool  { return disputePattern.MatchString(s) }
func endpointID(s string) bool { return endpointPattern.MatchString(s) }

// printable gives s if it is ASCII without control characters and no longer
// than Stripe's longest value (500 characters, of metadata), else nothing:
// PostgreSQL refuses a NUL, and a record of money must not fail on one.
func printable(s string) string {
	if len(s) > 500 {
		return ""
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return ""
		}
	}
	return s
}

// graphic tells whether s is one word of printable ASCII.
func graphic(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
