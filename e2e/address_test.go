package e2e

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
)

// ports begins anywhere, so that two runs on one machine seldom meet, and stays
// below the ports that systems give to outgoing connections.
var ports = func() *atomic.Int64 {
	var first atomic.Int64
	first.Store(12_200 + rand.Int64N(15_000))
	return &first
}()

// freeAddress returns an address of this machine on which nobody listens, and
// which no other test of the run is given.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.FormatInt(ports.Add(1), 10))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}
