package e2e

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireNothingLeft requires that nothing of a deployment runs any more and
// that nobody listens where its shops and its Stripe were.
func requireNothingLeft(t testing.TB, d *deployment) {
	t.Helper()
	require.Empty(t, processesOf(d), "processes that were left behind")
	addresses := []string{d.stripe.addr}
	for _, s := range d.shops {
		addresses = append(addresses, s.addr)
	}
	for _, address := range addresses {
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err, "somebody still listens on %s", address)
		require.NoError(t, listener.Close())
	}
	files, err := filepath.Glob(filepath.Join(d.dataDir, "pg*", "postmaster.pid"))
	require.NoError(t, err)
	require.Empty(t, files, "a PostgreSQL that was left behind")
}

// processesOf finds the processes that have the deployment's data folder in
// their arguments or environment. Where the system does not show them it finds
// none, and the addresses alone tell.
func processesOf(d *deployment) []int {
	if runtime.GOOS != "linux" {
		return nil
	}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var found []int
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, name := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err == nil && names(text, d.dataDir) {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// names is true if the text names the folder itself or something in it, not
// data-12 for data-1.
func names(text []byte, folder string) bool {
	for rest := text; ; {
		_, after, found := bytes.Cut(rest, []byte(folder))
		if !found {
			return false
		}
		if len(after) == 0 || after[0] == 0 || after[0] == '/' {
			return true
		}
		rest = after
	}
}
