package view

// CourseState decides what the box beside a course offers.
type CourseState string

// The states of a course for this account.
const (
	CourseForSale CourseState = "for_sale" // a form: "Go to checkout"
	CourseFree    CourseState = "free"     // a form: "Take the course"
	CourseOpen    CourseState = "open"     // an order is open: a link to its checkout
	CourseOwned   CourseState = "owned"    // a link to lesson 1
)

// Course is the page of one course.
type Course struct {
	Frame    Frame
	Slug     string
	Title    string
	Summary  string
	Price    string // "$49.00", "¥5,800", "Free"
	State    CourseState
	OrderKey string   // the key of POST /orders; needed for sale and free
	OrderURL string   // the open order, or the receipt of an owned course
	Facts    []Fact   // "Time" / "1 h 20 min"
	Outcomes []string // clauses that complete "you will be able to"
	Needs    string   // what it takes to follow, a sentence; may be empty
	Lessons  []LessonLink
}

// LessonLink is a lesson in a list of contents.
type LessonLink struct {
	Number int
	Title  string
	Time   string // "18 min"; may be empty
	URL    string // empty if the lesson may not be read: it is listed and not linked
}
