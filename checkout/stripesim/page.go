package stripesim

import (
	"html/template"
	"net/http"
	"strings"
)

// pageView is one of the local Stripe's own pages.
type pageView struct {
	Title, Text    string
	Lists          []pageList
	Action, Source string // form that answers a challenge
	Back           string // address to go back to
}

type pageList struct {
	Title string
	Items []string
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} · local Stripe</title>
<style>
:root { color-scheme: light dark }
body { max-width: 40rem; margin: 3rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1rem }
button { min-height: 44px; padding: 0 1.25rem; margin: 0 .75rem .75rem 0; font: inherit }
li { overflow-wrap: anywhere }
</style>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{with .Action}}<form method="post" action="{{.}}">
<input type="hidden" name="source" value="{{$.Source}}">
<button name="outcome" value="succeeded">Yes, it is me</button>
<button name="outcome" value="failed">Fail authentication</button>
</form>{{end}}
{{with .Back}}<p><a href="{{.}}">Back to the shop</a></p>{{end}}
{{range .Lists}}<h2>{{.Title}}</h2>
<ul>{{range .Items}}<li>{{.}}</li>{{end}}</ul>{{end}}
</main>
</html>
`))

func showPage(w http.ResponseWriter, status int, view pageView) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	// no-referrer would make older browsers send the form with the origin "null", which looks like another site's.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, view)
}

// notImitated is what a reader of the real Stripe's documentation would miss. The package's documentation says the same.
var notImitated = []string{
	"Customers, saved cards, SetupIntents, subscriptions, invoices, Checkout, payouts, balance transactions, Connect.",
	"Any payment method but cards, and cards other than the test methods: no card number is ever taken.",
	"Stripe.js and the Payment Element: a browser cannot create a confirmation token here, a test helper can.",
	"API versions other than " + APIVersion + "; the v2 API; the search API.",
	"Rate limits, permissions of restricted keys, and delays, unless a rule or a method asks for them.",
	"Conversion between currencies, and the minimums that follow from it.",
	"What Stripe does not publish: which 400s are stored under a key, the cap on confirmations, the schedule of retries.",
}

// about says to whoever opens the address what this is.
func (s *Server) about(w http.ResponseWriter, r *http.Request) {
	const what = "A local Stripe for development and tests. It moves no money, and it is not made by Stripe."
	var endpoints []string
	for _, route := range routes() {
		endpoints = append(endpoints, route.name())
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		writeJSON(w, http.StatusOK, map[string]any{
			"what": what, "id": s.config.ID, "api_version": APIVersion, "endpoints": endpoints, "does_not_imitate": notImitated,
		})
		return
	}
	showPage(w, http.StatusOK, pageView{Title: "Local Stripe", Text: what, Lists: []pageList{
		{"Endpoints", endpoints}, {"Does not imitate", notImitated},
	}})
}

func (s *Server) receiptPage(w http.ResponseWriter, r *http.Request) {
	_, found := s.find(r.PathValue("id"))
	ch, ok := found.(*chargeRecord)
	if !ok {
		showPage(w, http.StatusNotFound, pageView{Title: "No such receipt", Text: "The local Stripe does not know this charge."})
		return
	}
	text := format(ch.Amount, ch.Currency) + ", " + ch.Status
	if ch.AmountRefunded > 0 {
		text += ", of which refunded: " + format(ch.AmountRefunded, ch.Currency)
	}
	showPage(w, http.StatusOK, pageView{Title: "Receipt", Text: text + ". Nobody was charged: this is the local Stripe."})
}
