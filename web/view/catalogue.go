package view

// Catalogue is the front page: the courses on sale.
type Catalogue struct {
	Frame   Frame
	Courses []CatalogueCourse
	Start   Link // the course to begin with, the main action; none if its label is empty
}

// CatalogueCourse is one row of the catalogue.
type CatalogueCourse struct {
	Slug    string // names the course in its URL, and picks its drawing
	Title   string
	Summary string // one sentence
	Lessons string // "4 lessons"; may be empty
	Time    string // "1 h 20 min"; may be empty
	Price   string // "$49.00", "¥5,800", "Free"
	Owned   bool   // shown as "Yours" in place of the price
}
