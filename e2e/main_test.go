package e2e

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// TestMain cleans up what all tests of a run share: the program, the folders,
// and the PostgreSQL.
func TestMain(m *testing.M) {
	flag.Parse()
	// Most of a test's time is spent waiting for a Retry-After or a process, so
	// more of them than there are cores run well side by side.
	if given := flag.Lookup("test.parallel"); given.Value.String() == given.DefValue {
		if err := flag.Set("test.parallel", "6"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	for _, clean := range slices.Backward(atEnd.list) {
		if err := clean(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: cleaning up:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// atEnd is what remains to be done when all tests have ended, in the opposite
// order.
var atEnd struct {
	sync.Mutex
	list []func() error
}

func afterAllTests(clean func() error) {
	atEnd.Lock()
	defer atEnd.Unlock()
	atEnd.list = append(atEnd.list, clean)
}
