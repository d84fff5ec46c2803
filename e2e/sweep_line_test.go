package e2e

import (
	"fmt"
	"strings"
	"sync"
)

// way is a direction in which messages travel between a shop and what it
// stands on.
type way int

const (
	toPostgres way = iota
	fromPostgres
	toStripe
	fromStripe
	ways // how many there are
)

func (w way) String() string {
	return [...]string{"to PostgreSQL", "from PostgreSQL", "to Stripe", "from Stripe"}[w]
}

// boundary is the place in front of one message of an operation: the n-th that
// goes that way, from 0. Each way is counted by itself, because two messages
// that go different ways may be on the line at once, in either order.
type boundary struct {
	way way
	n   int
}

// trace is every message of one operation, in words, in order, each way by
// itself.
type trace [ways][]string

// boundaries lists them all.
func (t trace) boundaries() (all []boundary) {
	for w := range ways {
		for n := range t[w] {
			all = append(all, boundary{w, n})
		}
	}
	return all
}

func (t trace) describe(b boundary) string {
	return fmt.Sprintf("%s, message %d of %d, %s", b.way, b.n+1, len(t[b.way]), t[b.way][b.n])
}

// fate is what happens at a boundary.
type fate int

const (
	killedBefore fate = iota // the shop dies, and the message is never sent on
	killedAfter              // the message is sent on, and the shop dies
	cut                      // the connection breaks, and the message is lost with it
	delayed                  // the message waits until the test lets it go
)

// strike is one boundary and what happens there.
type strike struct {
	boundary
	fate  fate
	clean trace  // what an undisturbed operation sends
	kill  func() // ends the shop; returns when it has ended

	struck  chan struct{} // closed when it has happened
	release chan struct{} // closed by the test: a delayed message goes on
}

// line is what both proxies of a shop share: it numbers the messages of one
// operation, and strikes at one of them.
type line struct {
	mu       sync.Mutex
	counting bool
	seen     trace
	// from and until, if set, are how the first message to PostgreSQL ends that counts,
	// and the first one after it that does not any more: for an operation that the
	// shop begins by itself.
	from, until string
	strike      *strike
	// strayed is true if this operation did not send what an undisturbed one
	// sends before the boundary, because something else was on the line: a
	// connection that was new, a question whether one is still alive, a loop in
	// the background. Then nothing is struck, and the boundary is tried again.
	strayed bool
	// early, if set, is called once, when the operation calls Stripe for the
	// first time: no transaction is open then.
	early func()
}

// begin starts counting, for a strike or, without one, for a clean run.
func (l *line) begin(s *strike, early func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counting, l.seen, l.strike, l.early, l.strayed = true, trace{}, s, early, false
}

// beginWithin starts counting at the first message to PostgreSQL that ends with
// from, until the first one after it that ends with until.
func (l *line) beginWithin(s *strike, from, until string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counting, l.seen, l.strike, l.early, l.strayed = true, trace{}, s, nil, false
	l.from, l.until = from, until
}

// over is true when an operation that was begun by beginWithin has ended.
func (l *line) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.counting
}

// end stops counting. struck is true if the strike has happened where it should.
func (l *line) end() (seen trace, struck bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counting = false
	struck = l.strike != nil && closed(l.strike.struck)
	return l.seen, struck
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// passage is what a proxy does with a message.
type passage int

const (
	goesOn passage = iota
	isLost         // it is not sent on, and its connection ends
	isLast         // it is sent on, and then the shop is killed
)

// pass tells a proxy what becomes of a message that it has read and not yet
// sent on. It returns only when the message may go on.
func (l *line) pass(w way, words string) passage {
	l.mu.Lock()
	if !l.counting || !l.within(w, words) {
		l.mu.Unlock()
		return goesOn
	}
	l.seen[w] = append(l.seen[w], words)
	early := func() {}
	if w == toStripe && l.early != nil {
		early, l.early = l.early, nil
	}
	s := l.strike
	struck := s != nil && !l.strayed && !closed(s.struck) && l.reached(w, s)
	if struck {
		close(s.struck)
	}
	l.mu.Unlock()
	early()
	if !struck {
		return goesOn
	}

	switch s.fate {
	case killedBefore:
		s.kill()
		return isLost
	case killedAfter:
		return isLast
	case cut:
		return isLost
	}
	<-s.release
	return goesOn
}

// within is true for a message of the operation. It notices its first and its
// last.
func (l *line) within(w way, words string) bool {
	if l.from == "" {
		return true
	}
	begun := len(l.seen[toPostgres]) > 0
	switch {
	case begun && w == toPostgres && strings.HasSuffix(words, l.until):
		l.counting = false
	case !begun && (w != toPostgres || !strings.HasSuffix(words, l.from)):
	default:
		return true
	}
	return false
}

// reached is true at the strike's boundary. It notices when the operation has
// left the path of the clean run.
func (l *line) reached(w way, s *strike) bool {
	if w != s.way {
		return false
	}
	n := len(l.seen[w]) - 1
	l.strayed = s.clean[w][n] != l.seen[w][n]
	return !l.strayed && n == s.n
}

// kill ends the shop after a message was sent on.
func (l *line) kill() {
	l.mu.Lock()
	s := l.strike
	l.mu.Unlock()
	s.kill()
}
