package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// summary is what became of all orders.
type summary struct {
	orders, failed, unknown, paid int
	counted, charges              int
	answers, sends                int
	fresh, replayed               []time.Duration
	statuses                      map[int]int
	broken                        []string
	why                           error // of the first order that could not be placed
	took                          time.Duration
}

func (s *summary) add(t tale) {
	s.orders++
	if t.failed != nil {
		s.failed++
		s.why = cmp.Or(s.why, t.failed)
		return
	}
	if t.unknown {
		s.unknown++
	}
	if t.paid {
		s.paid++
	}
	if t.counted {
		s.counted++
		s.charges += t.charges
	}
	s.broken = append(s.broken, t.broken...)
	for _, c := range t.copies {
		if c.answer == nil {
			continue
		}
		if s.statuses == nil {
			s.statuses = map[int]int{}
		}
		s.answers++
		s.statuses[c.answer.Status]++
		s.sends += c.answer.Sends
		if c.answer.Replayed {
			s.replayed = append(s.replayed, c.took)
		} else {
			s.fresh = append(s.fresh, c.took)
		}
	}
}

// print tells of the storm. The verdict is the last line.
func (s *summary) print(to io.Writer, c *stormCommand) error {
	out := bufio.NewWriter(to)
	fmt.Fprintf(out, "%s, %s of each payment, %d at once, on %s: %s\n\n",
		counted(c.Orders, "order"), counted(c.Copies, "copy"), c.AtOnce, strings.Join(c.URL, " and "), s.took.Round(time.Millisecond))
	fmt.Fprintf(out, "  answers    %d: %d fresh, %d replayed%s\n", s.answers, len(s.fresh), len(s.replayed), s.byStatus())
	fmt.Fprintf(out, "  sends      %d, %d of them again with the same key\n", s.sends, s.sends-s.answers)
	fmt.Fprintf(out, "  paid       %d of %d\n", s.paid, s.orders-s.failed)
	if s.counted > 0 {
		fmt.Fprintf(out, "  charges    %d, counted at Stripe\n", s.charges)
	} else {
		fmt.Fprintf(out, "  charges    not counted: outside demo mode the shops do not hand Stripe's count on\n")
	}
	for _, l := range []struct {
		name  string
		times []time.Duration
	}{{"fresh", s.fresh}, {"replayed", s.replayed}} {
		if len(l.times) > 0 {
			slices.Sort(l.times)
			fmt.Fprintf(out, "  %-9s  median %s, p99 %s, longest %s\n", l.name, at(l.times, 50), at(l.times, 99), at(l.times, 100))
		}
	}
	if s.failed > 0 {
		fmt.Fprintf(out, "  failed     %s could not be placed: %s\n", counted(s.failed, "order"), oneLine(s.why))
	}
	if s.unknown > 0 {
		fmt.Fprintf(out, "  unknown    %s\n", counted(s.unknown, "order"))
	}
	fmt.Fprintln(out)
	for _, text := range s.broken {
		fmt.Fprintf(out, "BROKEN  %s\n", text)
	}
	if len(s.broken) == 0 && s.failed == 0 && s.unknown == 0 {
		if s.counted == s.orders {
			fmt.Fprintln(out, "Every invariant holds: at most one charge for each order, paid if and only if charged, the same bytes for every copy.")
		} else {
			fmt.Fprintln(out, "Every invariant that can be seen from here holds: at most one payment for each order, the same bytes for every copy.")
		}
	}
	return out.Flush()
}

// byStatus names the answers' statuses, unless all are 201.
func (s *summary) byStatus() string {
	if len(s.statuses) == 1 && s.statuses[201] > 0 || s.answers == 0 {
		return ""
	}
	var parts []string
	for status, n := range s.statuses {
		parts = append(parts, fmt.Sprintf("%d of %d", n, status))
	}
	slices.Sort(parts)
	return " (" + strings.Join(parts, ", ") + ")"
}

// at gives a percentile of sorted times.
func at(sorted []time.Duration, percent int) time.Duration {
	i := (len(sorted)*percent+99)/100 - 1
	return sorted[max(0, i)].Round(100 * time.Microsecond)
}

func counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(what, "y"))
	}
	return fmt.Sprintf("%d %ss", n, what)
}
