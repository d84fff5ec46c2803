package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"payonce/web/view"
)

// twoCopies is a payment and its duplicate: the drawing of a receipt.
func twoCopies() view.Swimlane {
	return view.Swimlane{
		Caption: "Two copies of one payment over 200 milliseconds", First: "Copy", Last: "Answer", Scale: view.NewScale(197.7, "ms"),
		Lanes: []view.Lane{
			{
				Name: "1", Spoken: "Claim 0 to 3 ms, call to Stripe 3 to 188 ms, charged at 171 ms, record 188 to 192 ms, answered 201", Outcome: "201", Winner: true,
				Shapes: []view.Shape{
					{Kind: view.Call, From: 3, To: 188.4},
					{Kind: view.Insert, From: 0, To: 3},
					{Kind: view.Point, From: 74},
					{Kind: view.Insert, From: 188.4, To: 191.8},
					{Kind: view.Charge, From: 171},
				},
				Labels: []view.LaneLabel{{At: 0, Text: "claim", Anchor: "start"}, {At: 74, Text: "intent created", Anchor: "middle", Wide: true}, {At: 171, Text: "charged", Anchor: "middle"}},
			},
			{
				Name: "2", Spoken: "Arrived at 1 ms, waited for the key, replayed at 194 ms", Outcome: "201 replay",
				Shapes: []view.Shape{{Kind: view.Waiting, From: .8, To: 191.8}, {Kind: view.Released, From: 191.8}, {Kind: view.Replayed, From: 194.1}},
			},
		},
	}
}

// place is where a shape stands and how large it is, as the browser reads it.
func place(n *html.Node) [4]string {
	if n.Data == "line" {
		return [4]string{attr(n, "x1"), attr(n, "y1"), attr(n, "x2"), attr(n, "y2")}
	}
	return [4]string{attr(n, "x"), attr(n, "y"), attr(n, "width"), attr(n, "height")}
}

func TestSwimlaneDrawsTimeInPercentAndHeightInPixels(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.SwimlaneTable(twoCopies())))
	rows := elements(only(t, elements(root, named("tbody"))), named("tr"))
	require.Len(t, rows, 2)

	shape := func(row *html.Node, class string) [][4]string {
		var places [][4]string
		for _, n := range elements(row, withClass(class)) {
			places = append(places, place(n))
		}
		return places
	}
	require.Equal(t, [][4]string{{"0.00%", "8", "1.50%", "12"}, {"94.20%", "8", "1.70%", "12"}}, shape(rows[0], "insert"))
	require.Equal(t, [][4]string{{"1.50%", "8", "92.70%", "12"}}, shape(rows[0], "call"))
	require.Equal(t, [][4]string{{"37.00%", "8", "37.00%", "20"}}, shape(rows[0], "point"))
	require.Equal(t, [][4]string{{"0.40%", "10", "95.50%", "8"}}, shape(rows[1], "waiting"))
	require.Equal(t, [][4]string{{"95.90%", "0", "95.90%", "28"}}, shape(rows[1], "released"))
	require.Len(t, shape(rows[0], "grid"), 5)

	for _, n := range elements(rows[0], named("use")) {
		require.Equal(t, "#charge", attr(n, "href"))
		require.Equal(t, [4]string{"85.50%", "14", "", ""}, place(n))
	}
	for _, svg := range elements(root, named("svg")) {
		_, scaled := lookup(svg, "viewbox")
		require.False(t, scaled, "a view box would scale the text")
	}
}

func TestSwimlaneReadsAsATable(t *testing.T) {
	t.Parallel()
	root := parse(t, renderPage(t, view.SwimlaneTable(twoCopies())))
	rows := elements(only(t, elements(root, named("tbody"))), named("tr"))
	require.Equal(t, "1 claim intent created charged 201", text(rows[0]))
	require.Equal(t, "2 201 replay", text(rows[1]))
	require.True(t, hasClass(rows[0], "winner"))
	require.True(t, hasClass(rows[0], "tall"))
	require.False(t, hasClass(rows[1], "tall"))
	require.Equal(t, "Two copies of one payment over 200 milliseconds", text(only(t, elements(root, named("caption")))))
	require.Equal(t, "0 50 100 150 200 ms", text(only(t, elements(root, withClass("axis")))))
	for _, lane := range elements(root, withClass("lane")) {
		require.Equal(t, "img", attr(lane, "role"))
		require.NotEmpty(t, attr(lane, "aria-label"))
	}
}

func TestLegendDrawsEachShapeAsTheLaneDoes(t *testing.T) {
	t.Parallel()
	kinds := []view.ShapeKind{
		view.Insert, view.Call, view.Select, view.Waiting, view.Thread, view.Leased, view.Commit, view.Point, view.Released,
		view.Charge, view.Extra, view.Replayed, view.Fail, view.Told, view.Lapse,
	}
	var items []view.LegendItem
	for _, kind := range kinds {
		items = append(items, view.LegendItem{Kind: kind, Text: string(kind)})
	}
	legend := parse(t, renderPage(t, view.Legend(items)))
	page := parse(t, renderPage(t, view.OrdersPage(orders())))
	for i, item := range elements(legend, named("li")) {
		shapes := elements(only(t, elements(item, named("svg"))), func(*html.Node) bool { return true })
		drawn := only(t, shapes)
		if drawn.Data == "use" {
			require.Len(t, elements(page, func(n *html.Node) bool { return "#"+attr(n, "id") == attr(drawn, "href") }), 1, "no such mark: %s", kinds[i])
		} else {
			require.Equal(t, string(kinds[i]), attr(drawn, "class"))
		}
	}
}
