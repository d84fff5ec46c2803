package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// workshop is the folder of a run, with the program and the data folders of the
// tests. It is not t.TempDir, because PostgreSQL runs as nobody where the tests
// run as root, and must be able to pass.
var workshop = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "payonce-e2e-")
	if err != nil {
		return "", err
	}
	afterAllTests(func() error { return os.RemoveAll(dir) })
	return dir, os.Chmod(dir, 0o711)
})

// program builds the shop, once a run.
var program = sync.OnceValues(func() (string, error) {
	dir, err := workshop()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "shop")
	args := []string{"build", "-o", path}
	if raceDetector {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "payonce/cmd/shop")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the shop: %w\n%s", err, out)
	}
	return path, nil
})

func builtProgram(t testing.TB) string {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	return path
}

var folders atomic.Int64

// newFolder returns the path of a data folder that the shop may make.
func newFolder(t testing.TB) string {
	t.Helper()
	dir, err := workshop()
	require.NoError(t, err)
	return filepath.Join(dir, "data-"+strconv.FormatInt(folders.Add(1), 10))
}

// settings are variables of the environment, as in "LEASE=4s".
type settings []string

// environment is what a shop is started with: the tests' own environment
// without anything that configures a shop, and then the settings.
func (s settings) environment() []string {
	kept := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(variables, name)
	})
	// The race detector ends a shop that has a race with this status, and no
	// test expects it.
	return slices.Concat(kept, []string{"GORACE=exitcode=66"}, s)
}

// variables are the ones that configure a shop.
var variables = []string{
	"ADDR", "PUBLIC_URL", "METRICS_ADDR", "DATA_DIR", "DATABASE_URL", "DB_MAX_CONNS",
	"STRIPE_SECRET_KEY", "STRIPE_PUBLISHABLE_KEY", "STRIPE_WEBHOOK_SECRET", "STRIPE_API_BASE", "STRIPE_SIM_ADDR",
	"SESSION_SECRET", "LEASE", "PROVIDER_TIMEOUT", "WAIT", "COMPLETER_INTERVAL", "RETENTION", "EVENT_RETENTION",
	"ORDER_EXPIRY", "RESEND_WINDOW", "ACTION_TIMEOUT", "REFUND_WINDOW", "DEMO", "GORACE",
}
