package web

import (
	"strconv"
	"time"

	"payonce/checkout"
)

// Pages get text; this is where money and times become it. Times are in UTC,
// because the shop does not know where its buyer is.

func price(m checkout.Money) string {
	if m.Amount == 0 {
		return "Free"
	}
	return m.String()
}

func day(t time.Time) string    { return t.UTC().Format("2 January 2006") }
func moment(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }
func clock(t time.Time) string  { return t.UTC().Format("15:04:05") }
func stamp(t time.Time) string  { return t.UTC().Format(time.RFC3339) }

// readingTime says how long something takes to read: "55 min", "1 h 20 min".
func readingTime(minutes int) string {
	hours, rest := minutes/60, minutes%60
	switch {
	case hours == 0:
		return strconv.Itoa(rest) + " min"
	case rest == 0:
		return strconv.Itoa(hours) + " h"
	}
	return strconv.Itoa(hours) + " h " + strconv.Itoa(rest) + " min"
}

// span says how long a setting is, in the largest unit that says it exactly:
// "72 hours", "1 second".
func span(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= unit.length && d%unit.length == 0 {
			return counted(int(d/unit.length), unit.name)
		}
	}
	return d.String()
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
