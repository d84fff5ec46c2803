package view_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/static"
	"payonce/web/view"
)

const (
	hostileText = `</p><script>alert(1)</script><img src=x onerror=alert(2)>" onload="alert(3)' autofocus='`
	hostileURL  = `javascript:alert(1)`
)

// poison fills every text of a model with markup and every URL with a script.
func poison(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			poison(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			poison(v.Index(i), name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		poison(v.Elem(), name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		if strings.HasSuffix(name, "URL") {
			v.SetString(hostileURL)
		} else if v.Type().Name() == "string" {
			v.SetString(hostileText)
		}
	}
}

func poisoned[M any](page func(M) templ.Component, change func(*M)) templ.Component {
	var m M
	poison(reflect.ValueOf(&m).Elem(), "")
	if change != nil {
		change(&m)
	}
	return page(m)
}

func TestNothingFromAModelReachesAPageAsMarkup(t *testing.T) {
	t.Parallel()
	pages := map[string]templ.Component{
		"catalogue": poisoned(view.CataloguePage, nil),
		"orders":    poisoned(view.OrdersPage, nil),
		"policy":    poisoned(view.PolicyPage, nil),
		"problem":   poisoned(view.ProblemPage, nil),
		"closed":    poisoned(view.ClosedPage, nil),
		"reading":   poisoned(view.ReadingPage, func(m *view.Reading) { m.Content, m.Number = view.Code("sql", hostileText), 1 }),
		"swimlane":  poisoned(view.SwimlaneTable, func(m *view.Swimlane) { m.Scale = view.NewScale(1, hostileText) }),
		"ledger":    poisoned(view.LedgerPage, nil),
		"lab":       poisoned(view.LabPage, func(m *view.Lab) { m.Sweep.State = view.LabRunning }),
		"lab limit": poisoned(view.LabPage, func(m *view.Lab) { m.Sweep.State = view.LabFailed }),
		"experiment": poisoned(view.LabExperimentPage, func(m *view.LabExperiment) {
			m.Run.State = view.LabDone
			for i := range m.Variants {
				m.Variants[i].Drawing.Scale = view.NewScale(1, hostileText)
			}
		}),
		"key state": view.KeyState(hostileText),
		"lease":     view.Lease(.5, hostileText),
		"figure":    view.Figure(hostileText, hostileText, view.Wrong),
		"note":      view.Note(hostileText),
	}
	for _, state := range []view.CourseState{view.CourseForSale, view.CourseFree, view.CourseOpen, view.CourseOwned} {
		pages["course "+string(state)] = poisoned(view.CoursePage, func(m *view.Course) { m.State = state })
	}
	for _, outcome := range []view.Outcome{view.NoOutcome, view.Declined, view.PaymentNotMade, view.ProviderBusy, view.ProviderRefused} {
		pages["checkout "+string(outcome)] = poisoned(view.CheckoutPage, func(m *view.Checkout) { m.Outcome = outcome })
	}
	for _, state := range []view.CheckingState{view.OutcomeUnknown, view.RequiresAction} {
		pages["checking "+string(state)] = poisoned(view.CheckingPage, func(m *view.Checking) { m.State = state })
	}
	for _, state := range []view.ReceiptState{view.Paid, view.TakenFree, view.RefundInProgress, view.RefundedInPart, view.RefundedInWhole} {
		pages["receipt "+string(state)] = poisoned(view.ReceiptPage, func(m *view.Receipt) { m.State = state })
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := renderPage(t, page)
			require.Contains(t, source, "alert", "the page shows none of its model")
			for n := range parse(t, source).Descendants() {
				require.NotEqual(t, "img", n.Data)
				if n.Type == html.ElementNode && n.Data == "script" {
					require.Contains(t, []string{static.Path("checkout.js"), static.Path("ledger.js"), static.Path("lab.js")}, attr(n, "src"))
					require.Nil(t, n.FirstChild)
				}
				for _, a := range n.Attr {
					require.NotContains(t, []string{"onload", "onerror", "autofocus"}, a.Key)
					if a.Key == "href" || a.Key == "action" {
						require.False(t, strings.HasPrefix(strings.ToLower(a.Val), "javascript:"), a.Val)
						require.Equal(t, 0, strings.Count(a.Val, `"`), a.Val)
					}
				}
			}
		})
	}
}

func TestAnIDCannotClimbOutOfItsPlaceInAPath(t *testing.T) {
	t.Parallel()
	m := checkout(view.NoOutcome)
	m.Order.ID = "../courses/x?y=1#z"
	root := parse(t, renderPage(t, view.CheckoutPage(m)))
	require.Equal(t, "/orders/..%2Fcourses%2Fx%3Fy=1%23z/payments", attr(only(t, elements(root, named("form"))), "action"))
}
