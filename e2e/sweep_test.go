package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSweep breaks one operation after the other at every one of its messages
// to and from PostgreSQL and Stripe, and requires that it ends as it should: at
// most one charge, the order paid if and only if it was charged, the same answer
// under the same key, and nothing that stays unresolved.
//
// SWEEP=all is the whole: every flow, in every manner, at every boundary;
// SWEEP_SHARD=2/4 is the second quarter of it. Without SWEEP it is the quick
// form: a purchase in four manners, and a delivery and a run of the completer
// whose shop is killed, at each message to or from Stripe and at each message of
// a COMMIT and its answer; and where the shop is killed and the client comes back,
// at every tenth of the others too.
func TestSweep(t *testing.T) {
	whole := os.Getenv("SWEEP") == "all"
	mine := shard(t)
	report := &sweepReport{counts: map[string]map[string]int{}}
	t.Run("At", func(t *testing.T) {
		sweepCompleter(t, whole, mine, report)
		for _, f := range flows {
			for _, m := range manners {
				killed := m.name == "KilledBefore"
				inQuick := f.name == "Purchase" && m.name != "KilledAfter" && m.name != "CutAndClientGone" && !m.completer || f.name == "Webhook" && killed
				if !whole && !inQuick {
					continue
				}
				t.Run(f.name+"/"+m.name, func(t *testing.T) {
					t.Parallel()
					sweep(t, f, m, report, func(s *stage, b boundary, number int) bool {
						return (whole || s.clean.matters(b) || killed && number%10 == 0) && mine(number)
					})
				})
			}
		}
	})
	report.print()
	if !t.Failed() {
		fmt.Println("0 violations")
	}
}

// sweep tries one flow in one manner at the boundaries that are chosen.
func sweep(t *testing.T, f flow, m manner, report *sweepReport, chosen func(*stage, boundary, int) bool) {
	s := newStage(t, f)
	s.count(t)
	at := "the clean runs"
	defer func() {
		if t.Failed() {
			t.Logf("%s, %s: %s", f.name, m.name, at)
		}
	}()
	for number, b := range s.clean.boundaries() {
		if !chosen(s, b, number) {
			continue
		}
		at = s.clean.describe(b)
		if ended := s.try(t, b, m); ended != "" {
			report.add(f, m, ended)
		}
	}
	at = "the end"
	for _, ended := range s.complete(t) {
		report.add(f, m, ended)
	}
	requireInvariants(t, s.deployment)
	s.deliverAll(t)
	requireInvariants(t, s.deployment)
}

// matters is true for the boundaries of the quick form.
func (t trace) matters(b boundary) bool {
	// A COMMIT is four messages to the server, of which the first names it, and
	// two of its answer's count.
	of := map[way]int{toPostgres: 4, fromPostgres: 2}[b.way]
	said := t[b.way][max(0, b.n-of+1) : b.n+1]
	return b.way >= toStripe || slices.ContainsFunc(said, func(words string) bool { return strings.HasSuffix(words, " COMMIT") })
}

// shard reads SWEEP_SHARD.
func shard(t *testing.T) func(number int) bool {
	t.Helper()
	i, n := 1, 1
	if said := os.Getenv("SWEEP_SHARD"); said != "" {
		_, err := fmt.Sscanf(said, "%d/%d", &i, &n)
		require.True(t, err == nil && 1 <= i && i <= n, "SWEEP_SHARD is %q: set it as in 2/4", said)
	}
	return func(number int) bool { return number%n == i-1 }
}

// sweepReport counts how the operations ended.
type sweepReport struct {
	mu     sync.Mutex
	counts map[string]map[string]int // by flow and manner, and by end
}

func (r *sweepReport) add(f flow, m manner, ended string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := f.name + ", " + m.name
	if r.counts[name] == nil {
		r.counts[name] = map[string]int{}
	}
	r.counts[name][ended]++
}

// print shows the table.
func (r *sweepReport) print() {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		points := 0
		for _, n := range r.counts[name] {
			points += n
		}
		total += points
		fmt.Printf("%s: %d points\n", name, points)
		ends := slices.SortedFunc(maps.Keys(r.counts[name]), func(a, b string) int {
			return cmp.Or(r.counts[name][b]-r.counts[name][a], strings.Compare(a, b))
		})
		for _, ended := range ends {
			fmt.Printf("  %6d  %s\n", r.counts[name][ended], ended)
		}
	}
	fmt.Printf("the sweep tried %d points\n", total)
}
