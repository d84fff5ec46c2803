package checkout

import (
	"crypto/rand"
	"encoding/base32"
	"regexp"
	"strconv"
	"strings"
)

// newID makes an id of 120 random bits behind a prefix that tells what it is.
// Nobody can guess one, and no two processes make the same.
func newID(prefix string) string {
	var random [15]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never returns an error
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
}

// The downstream keys. They come from our rows, which are never deleted, and
// not from the client's key, which may be reaped and used again: a provider
// would then answer a new payment from an old one's memory.

func intentKey(o orderRow) string {
	return "pi:" + o.ID + ":" + strconv.Itoa(o.Generation)
}

func confirmKey(p paymentRow, generation int) string {
	return "pay:" + p.ID + ":" + strconv.Itoa(generation)
}

// cancelKey holds the owner's token, so that a stored refusal to cancel does
// not stick to the next owner.
func cancelKey(o orderRow, owner string) string {
	return "cancel:" + o.ID + ":" + strconv.Itoa(o.Generation) + ":" + owner
}

func refundKey(refund string) string { return "refund:" + refund }

var (
	ourID      = regexp.MustCompile(`^[a-z]{2,8}_[a-z2-7]{24}$`)
	providerID = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)
	slug       = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	word       = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)
)

// validSlug is true for a text that can be a course's slug.
func validSlug(s string) bool { return len(s) <= 64 && slug.MatchString(s) }
