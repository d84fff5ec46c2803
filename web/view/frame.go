package view

import "slices"

// Section is the entry of the header that the current page belongs to.
type Section string

// The entries of the header. NoSection marks none of them.
const (
	NoSection      Section = ""
	CoursesSection Section = "courses"
	OrdersSection  Section = "orders"
	LedgerSection  Section = "ledger"
	LabSection     Section = "lab"
	PolicySection  Section = "policy"
)

// Frame is what every page carries around its content.
type Frame struct {
	// Section is the entry of the header to mark as current.
	Section Section
	// Mode says what kind of money this is, at the right of the header: LocalStripe, StripeTest, or empty with a live key.
	Mode string
	// Facts are short truths about this shop for the footer, such as "PostgreSQL 17.6" or "Stripe API 2024-09-30".
	Facts []string
	// Lab is true where the race lab is open: elsewhere the header has no entry for it.
	Lab bool
}

// The two modes in which no money moves.
const (
	LocalStripe = "Local Stripe: no real money"
	StripeTest  = "Stripe test mode: no real money"
)

type headerLink struct {
	section    Section
	url, label string
}

var headerLinks = []headerLink{
	{CoursesSection, "/", "Courses"},
	{OrdersSection, "/orders", "Orders"},
	{LedgerSection, "/ledger", "Ledger"},
	{LabSection, "/lab", "Race lab"},
	{PolicySection, "/docs/idempotency", "Policy"},
}

// links are the entries that this shop has.
func (f Frame) links() []headerLink {
	return slices.DeleteFunc(slices.Clone(headerLinks), func(link headerLink) bool { return link.section == LabSection && !f.Lab })
}
