package checkout

// Course is what the shop sells.
type Course struct {
	Slug    string
	Title   string
	Summary string
	// Price is what it costs now; zero for a free course. An order keeps the
	// price of its moment.
	Price Money
}

// Free is true for a course that costs nothing; it is ordered without a payment.
func (c Course) Free() bool { return c.Price.Amount == 0 }

// Offer is a course as one account meets it.
type Offer struct {
	Course Course
	// Owned is true while the account has an active enrolment.
	Owned bool
	// OpenOrder is the id of the account's open order for the course, if any.
	OpenOrder string
}

// CatalogueView is the JSON of the catalogue.
type CatalogueView struct {
	Courses []CourseView `json:"courses"`
}

// CourseView is the JSON of one course of the catalogue.
type CourseView struct {
	Slug     string `json:"slug"`
	Title    string `json:"title"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Owned    bool   `json:"owned"`
}

// View is the course's JSON.
func (o Offer) View() CourseView {
	return CourseView{o.Course.Slug, o.Course.Title, o.Course.Price.Amount, o.Course.Price.Currency, o.Owned}
}
