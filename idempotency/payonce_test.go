// This is the one file of the package that knows the repository it stands in.
// Who takes the package along leaves it behind.
package idempotency_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"payonce/migrations/dbtest"

	"github.com/stretchr/testify/require"
)

// TestMain finds the tests a server where none is given: the repository's own.
func TestMain(m *testing.M) {
	run := &program{}
	if cmp.Or(os.Getenv("TEST_DATABASE_URL"), os.Getenv("DATABASE_URL")) == "" {
		if err := os.Setenv("TEST_DATABASE_URL", dbtest.NewURL(run)); err != nil {
			run.Fatalf("naming the server: %v", err)
		}
	}
	code := m.Run()
	run.end()
	os.Exit(code)
}

// program is the whole run, to what wants a test.
type program struct {
	testing.TB
	cleanups []func()
}

func (*program) Helper()                  {}
func (*program) Context() context.Context { return context.Background() }
func (p *program) Cleanup(f func())       { p.cleanups = append(p.cleanups, f) }

func (*program) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (p *program) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	os.Exit(1)
}

func (p *program) end() {
	for _, f := range p.cleanups {
		f()
	}
}

// leftBehind are the files and folders that are not part of the package when it
// is taken along.
var leftBehind = []string{"payonce_test.go", "racelab", "retry", "testdata"}

// What the README says about taking the package along is done here: the folder
// is copied into an empty module of another name, vetted, and tested there.
func TestLift(t *testing.T) {
	t.Parallel()
	module := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(module, "idempotency"), os.DirFS(".")))
	for _, name := range leftBehind {
		require.NoError(t, os.RemoveAll(filepath.Join(module, "idempotency", name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte(goMod(t)), 0o600))

	sums, err := os.ReadFile(filepath.Join("..", "go.sum")) // so that nothing is fetched
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.sum"), sums, 0o600))

	run(t, module, "go", "vet", "./...")
	out := run(t, module, "go", "test", "-count=1", "-v", "-run", "^(TestParseKey|TestDo|TestFence|Example.*)$", "./...")
	for _, ran := range []string{"--- PASS: TestDo/", "--- PASS: TestFence/", "--- PASS: Example", "example.com/shop/idempotency"} {
		require.Contains(t, out, ran)
	}
}

// goMod is the file of an empty module that has no requirement but this
// repository's versions of what the package needs.
func goMod(t *testing.T) string {
	t.Helper()
	ours, err := os.ReadFile(filepath.Join("..", "go.mod"))
	require.NoError(t, err)
	needed := []string{
		"github.com/jackc/pgx/v5", "github.com/gowebpki/jcs", "github.com/dunglas/httpsfv",
		"github.com/stretchr/testify", "pgregory.net/rapid", "github.com/anishathalye/porcupine",
	}
	mod := "module example.com/shop\n\n"
	for line := range strings.Lines(string(ours)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[0] == "go" {
			mod += line
		}
		for _, path := range needed {
			if len(fields) >= 2 && fields[0] == path {
				mod += "require " + path + " " + fields[1] + "\n"
			}
		}
	}
	require.Equal(t, len(needed), strings.Count(mod, "require "))
	return mod
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s:\n%s", name, strings.Join(args, " "), out)
	return string(out)
}
