// Package view holds the pages of the shop: templ components, and one view model for each.
//
// A page takes one struct and nothing else. Everything in it arrives formatted (money as "$49.00" or "¥5,800", dates and
// durations as text for people), so a page can be rendered and tested without a shop, a database or a clock. The words
// live here too: what a buyer reads about an outcome is decided by its state, not by whoever maps the row.
//
//	page                              model         route
//	CataloguePage                     Catalogue     GET /
//	CoursePage                        Course        GET /courses/{slug}
//	CheckoutPage                      Checkout      GET /orders/{id}: can be paid now (open, declined, busy, not made)
//	CheckingPage                      Checking      GET /orders/{id}: cannot be paid now and is not settled
//	ReceiptPage                       Receipt       GET /orders/{id}: paid, free, refunded in part or whole
//	ClosedPage                        Closed        GET /orders/{id}: expired
//	OrdersPage                        Orders        GET /orders
//	LedgerPage                        Ledger        GET /ledger
//	LabPage                           Lab           GET /lab
//	LabExperimentPage                 LabExperiment GET /lab/{experiment}
//	ReadingPage                       Reading       GET /courses/{slug}/lessons/{n}
//	ProblemPage                       Problem       any answer that is a page of its own: 400, 401, 403, 404, 413, 415, 422, 500
//	PolicyPage                        Policy        GET /docs/idempotency
//	LastResort                        (none)        when a page could not be rendered
//
// Parts that several pages share have files of their own: the frame (Frame), the money line (Charged), notices, facts,
// tables, figures, states of a key, listings (Code), asides (Note) and swimlanes (Swimlane). ProblemWords and DeclineWords
// hold the copy for every code of the API.
//
// Rules that the tests hold: one h1 a page, at most one primary action, a key always in a hidden field with
// autocomplete="off", no style attribute and no script in the page (the Content-Security-Policy forbids both), and no value
// that reaches the page unescaped.
//
// The checkout and the checking page load checkout.js, which speaks the client's half of the protocol. What it says lies
// here too, in templates (script.templ, try.templ): a notice that is not true yet is not on the page, and not in another
// language of the repository either. Without the script both pages work as they are.
package view
