package view

import "hash/fnv"

// plate is the small drawing of a course: many ink lines and exactly one green dot.
type plate struct {
	paths []string
	x, y  string // where the dot is
}

// plates are the drawings of the courses, by slug. The box is 120 by 80.
var plates = map[string]plate{
	// Two requests pass through the gap in what should have stopped one of them.
	"why-select-cannot-answer": {
		paths: []string{"M10 30H92M10 50H92", "M60 6V24M60 36V44M60 56V74"},
		x:     "104", y: "30",
	},
	// Eight presses, one wall, one charge.
	"idempotency-end-to-end": {
		paths: []string{"M18 12H72M6 20H72M24 28H92M12 36H72M30 44H72M9 52H72M20 60H72M14 68H72", "M72 6V74"},
		x:     "98", y: "28",
	},
	// Five transactions through one row.
	"postgresql-under-concurrency": {
		paths: []string{"M10 14C45 14 55 66 108 66M10 27C45 27 55 53 108 53M10 40H108M10 53C45 53 55 27 108 27M10 66C45 66 55 14 108 14"},
		x:     "52", y: "40",
	},
	// The request arrives, the answer does not.
	"stripe-in-production": {
		paths: []string{"M22 8V72M98 8V72", "M22 24H98", "M98 52H66M22 52H40"},
		x:     "98", y: "24",
	},
	// Deliveries cross on their way.
	"webhooks-are-a-different-ledger": {
		paths: []string{"M8 12H112M8 66H112", "M16 12L40 66M32 12L22 66M48 12L76 66M64 12L58 66M80 12L94 66M96 12L76 66"},
		x:     "76", y: "66",
	},
	// Every step of every run, and the one that fails.
	"proof-by-exhaustion": {
		paths: []string{
			"M14 12V24M26 12V24M38 12V24M50 12V24M62 12V24M74 12V24M86 12V24M98 12V24",
			"M14 34V46M26 34V46M38 34V46M50 34V46M62 34V46M86 34V46M98 34V46",
			"M14 56V68M26 56V68M38 56V68M50 56V68M62 56V68M74 56V68M86 56V68M98 56V68",
		},
		x: "74", y: "40",
	},
	// Two columns that must agree.
	"payments-platform-team": {
		paths: []string{"M60 12V66M12 20H108", "M18 30H46M18 39H38M18 48H50M18 57H34", "M70 30H98M70 39H90M70 48H102"},
		x:     "60", y: "66",
	},
}

// plateOf returns the drawing of a course. A course that has none gets lines whose lengths follow from its slug, so that
// it looks the same everywhere and unlike its neighbours.
func plateOf(slug string) plate {
	if drawn, ok := plates[slug]; ok {
		return drawn
	}
	sum := fnv.New64a()
	sum.Write([]byte(slug))
	seed := sum.Sum64()
	drawn := plate{}
	last := ""
	for _, y := range []string{"14", "24", "34", "44", "54", "64"} {
		last = []string{"60", "68", "76", "84", "88", "92", "96", "100"}[seed%8]
		drawn.paths = append(drawn.paths, "M16 "+y+"H"+last)
		if drawn.x == "" && seed%3 == 0 {
			drawn.x, drawn.y = last, y
		}
		seed >>= 3
	}
	if drawn.x == "" {
		drawn.x, drawn.y = last, "64"
	}
	return drawn
}
