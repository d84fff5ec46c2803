package idempotency

import "embed"

// Source is the source of the functions that claim, record, replay, take over
// and reap, for pages that show the code they run. A file has its name, as in
// "claim.go".
//
//go:embed claim.go do.go fingerprint.go others.go reaper.go record.go response.go
var Source embed.FS
