package view

import "github.com/a-h/templ"

// Lesson is one lesson of a course.
type Lesson struct {
	Number  int // from 1, in the order in which they are read
	Title   string
	Minutes int // reading time, the exercise included
	Body    templ.Component
}

// Syllabus is what a course's own page says before anyone pays.
type Syllabus struct {
	Outcomes []string // what you will be able to do, each a clause that completes "you can"
	Needs    string   // what you need to follow it
}

// courseText is what this package knows of a course: the shop's table holds its title, summary and price.
type courseText struct {
	syllabus Syllabus
	lessons  []Lesson
}

// courseTexts is the text of every course, by slug. The slugs are those of the catalogue's migration, and a test reads both.
var courseTexts = map[string]courseText{
	"why-select-cannot-answer":        textWhySelect,
	"idempotency-end-to-end":          textEndToEnd,
	"postgresql-under-concurrency":    textUnderConcurrency,
	"stripe-in-production":            textStripeInProduction,
	"webhooks-are-a-different-ledger": textWebhooks,
	"proof-by-exhaustion":             textExhaustion,
	"payments-platform-team":          textPlatformTeam,
}

// Lessons returns the lessons of the course with this slug, in order, or nil if it has none.
func Lessons(slug string) []Lesson {
	return courseTexts[slug].lessons
}

// SyllabusOf returns the syllabus of the course with this slug, or the zero Syllabus if it has none.
func SyllabusOf(slug string) Syllabus {
	return courseTexts[slug].syllabus
}

// asNewCustomer opens an exercise in a terminal. The cookie jar is a customer: a fresh one owns nothing yet.
const asNewCustomer = `# A new customer, and a function that sends one keyed POST.
SHOP=http://127.0.0.1:8080   # the address that the shop printed
curl -s -o /dev/null -c jar "$SHOP/"
post() { # path, key, body, more options for curl
  curl -s -b jar "$SHOP$1" -H "Idempotency-Key: \"$2\"" -d "$3" \
    -H 'Content-Type: application/json' -H 'Accept: application/json' "${@:4}"
}
`
