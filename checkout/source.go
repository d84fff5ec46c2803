package checkout

import "embed"

// Source is the source of the ledger of events and of enrolling, for pages that
// show the code they are about. A file has its name, as in "event_rows.go".
//
//go:embed event_rows.go place_order.go
var Source embed.FS
