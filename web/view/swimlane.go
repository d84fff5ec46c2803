package view

// Swimlane is a drawing of who did what when: a table whose middle column is drawn. It needs no script, is read aloud
// row by row, and prints as it is.
type Swimlane struct {
	Caption string // for those who cannot see it: "Eight copies of one payment over 200 milliseconds"
	First   string // what a lane is: "Copy", "Worker", "Owner"
	Last    string // what its end is: "Answer", "Outcome"
	Scale   Scale
	Named   bool // lanes have names rather than numbers, and need a wider first column
	Lanes   []Lane
}

// Lane is one row.
type Lane struct {
	Name    string // "1", "7f3a"
	Spoken  string // its events in words, in order
	Shapes  []Shape
	Labels  []LaneLabel // a lane with labels is taller
	Outcome string      // "201", "201 replay", "23505"
	Wrong   bool        // the outcome is a fault
	Winner  bool
}

// Tall says that the lane has a line of labels above it.
func (l Lane) Tall() bool { return len(l.Labels) > 0 }

// Shape is one thing that happened in a lane: a span if To is after From, else a moment.
type Shape struct {
	Kind ShapeKind
	From float64 // in the unit of the scale
	To   float64
}

// ShapeKind is what happened. A kind is told by its shape, never by its colour alone.
type ShapeKind string

// The spans.
const (
	Insert  ShapeKind = "insert"  // claim, record, INSERT: filled
	Call    ShapeKind = "call"    // the provider: pale, edged
	Select  ShapeKind = "select"  // hollow and flat
	Waiting ShapeKind = "waiting" // hatched
	Thread  ShapeKind = "thread"  // a line between the statements of one worker
	Leased  ShapeKind = "lease"   // a lease that runs down with its owner dead: dotted
	Held    ShapeKind = "held"    // stopped by the lab until the others have come as far: dashed
)

// The moments drawn as lines.
const (
	Commit   ShapeKind = "commit"   // a bold line
	Point    ShapeKind = "point"    // a moment inside a call
	Released ShapeKind = "released" // the end of a wait: dashed, full height, in every lane that waited
)

// The moments drawn as marks.
const (
	Charge   ShapeKind = "charge"  // a disc
	Extra    ShapeKind = "extra"   // a charge too many: a disc with a plus
	Replayed ShapeKind = "none"    // a ring
	Fail     ShapeKind = "fail"    // an error, or killed: a cross
	Told     ShapeKind = "told"    // told 409, come back: a diamond
	Lapse    ShapeKind = "lapse"   // the lease lapses: a bar
	Done     ShapeKind = "done"    // the work was done, which was no charge: a filled square
	Ignored  ShapeKind = "ignored" // answered, and nothing done: a hollow square
	Doubt    ShapeKind = "unknown" // nobody knows: a dashed ring
)

// LaneLabel is a word above a lane.
type LaneLabel struct {
	At     float64
	Text   string
	Anchor string // "start", "middle" or "end"
	Wide   bool   // left out on a phone, where it would run into its neighbour
}

// The heights of a lane, in pixels. y is never scaled: a bar is as high on a phone as on a desk.
const (
	laneHeight  = 28
	laneMiddle  = laneHeight / 2
	labelHeight = 14
)

// height is how high the bar of a span is, or 0 for a span that is drawn as a line.
func (k ShapeKind) height() float64 {
	switch k {
	case Insert, Call:
		return 12
	case Select, Waiting:
		return 8
	}
	return 0
}

// drawing is how a shape is drawn: as a bar, a line across, a line down, or a mark.
type drawing int

const (
	drawnBar drawing = iota
	drawnAcross
	drawnDown
	drawnMark
)

func (k ShapeKind) drawing() drawing {
	switch k {
	case Insert, Call, Select, Waiting:
		return drawnBar
	case Thread, Leased, Held:
		return drawnAcross
	case Commit, Point, Released:
		return drawnDown
	}
	return drawnMark
}

// reach is from where to where a line down goes. The end of a wait runs through the lane's labels too, so that it joins
// the lanes above and below.
func (k ShapeKind) reach(tall bool) (top, bottom float64) {
	switch k {
	case Point:
		return 8, laneHeight - 8
	case Released:
		if tall {
			return -labelHeight, laneHeight
		}
		return 0, laneHeight
	}
	return 4, laneHeight - 4
}

// LegendItem explains one shape.
type LegendItem struct {
	Kind ShapeKind
	Text string
}

// gridTop is where the lines of the grid start: above the labels of a tall lane, so that the grid has no gaps.
func gridTop(tall bool) float64 {
	if tall {
		return -labelHeight
	}
	return 0
}
