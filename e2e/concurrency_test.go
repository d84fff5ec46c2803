package e2e

import (
	"crypto/rand"
	"sync"
)

// newKey is a key that nobody has used.
func newKey() string { return rand.Text() }

// atOnce calls f from n goroutines that begin together, and returns what they
// got, in their order.
func atOnce[T any](n int, f func(i int) T) []T {
	got := make([]T, n)
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-begin
			got[i] = f(i)
		})
	}
	close(begin)
	all.Wait()
	return got
}

// later calls f beside the test and gives what it returns.
func later[T any](f func() T) <-chan T {
	got := make(chan T, 1)
	go func() { got <- f() }()
	return got
}
