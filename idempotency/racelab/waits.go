package racelab

import (
	"slices"
	"strings"
	"time"
)

// attribute tells of each statement whether PostgreSQL was seen to make it
// wait, for whom, and which COMMIT or ROLLBACK ended that.
func attribute(events []moment, looks []look, began time.Time) {
	last := map[*moment][]uint32{} // who was in the way at the last look
	for _, l := range looks {
		for pid, b := range l.waiting {
			e := statementOf(events, l, pid, b.sql)
			if e == nil {
				continue
			}
			// The look fell somewhere between its question and its answer, and
			// not before the statement that it saw.
			seen := l.asked.Add(l.answered.Sub(l.asked) / 2)
			if seen.Before(e.start) {
				seen = e.start
			}
			at := milliseconds(seen.Sub(began))
			if e.Wait == nil {
				e.Wait = &Wait{SeenFrom: at, For: []int{}}
			}
			e.Wait.SeenTo = at
			for _, other := range b.by {
				if n := ownerOf(events, other, l.answered); !slices.Contains(e.Wait.For, n) {
					e.Wait.For = append(e.Wait.For, n)
				}
			}
			last[e] = b.by
		}
	}
	for e, blockers := range last {
		e.Wait.Until = milliseconds(e.end.Sub(began))
		if end := endOf(events, e, blockers); end != nil {
			e.Wait.EndedBy = end.Worker
			// The waiter is free before the answer to the COMMIT arrives, so
			// its own end may be the earlier of the two.
			e.Wait.Until = min(e.Wait.Until, milliseconds(end.end.Sub(began)))
		}
	}
}

// statementOf is the statement that a look saw waiting: it ran on that backend
// at the time, and begins as pg_stat_activity has it. It must have outlasted the
// look: the view reads the text first and the wait later, so the text of one that
// ended meanwhile may stand beside the wait of the next.
func statementOf(events []moment, l look, pid uint32, sql string) *moment {
	var found *moment
	for i := range events {
		e := &events[i]
		if e.Backend == pid && e.start.Before(l.answered) && e.end.After(l.answered) && strings.Contains(e.SQL, sql) {
			found = e
		}
	}
	return found
}

// ownerOf is the worker that a backend worked for at a time; 0 is the lab.
func ownerOf(events []moment, pid uint32, at time.Time) int {
	owner, last := 0, time.Time{}
	for _, e := range events {
		if e.Backend == pid && !e.start.After(at) && e.start.After(last) {
			owner, last = e.Worker, e.start
		}
	}
	return owner
}

// endOf is the last end of a transaction, of one of those backends, that had
// begun when the wait was over: of the others, the last one seen in the way.
func endOf(events []moment, waiter *moment, blockers []uint32) *moment {
	var found *moment
	for _, own := range []bool{true, false} {
		for i := range events {
			e := &events[i]
			ends := e.Commits || e.What == EventRollback || e.What == EventCommit
			if !ends || e.Worker == waiter.Worker || e.start.After(waiter.end) || e.end.Before(waiter.start) {
				continue
			}
			if own && !slices.Contains(blockers, e.Backend) {
				continue
			}
			if !own && !slices.Contains(waiter.Wait.For, e.Worker) {
				continue
			}
			if found == nil || e.start.After(found.start) {
				found = e
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}
