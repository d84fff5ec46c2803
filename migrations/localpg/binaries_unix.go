//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldest is the first major version that has all that the shop uses.
const oldest = 15

// binaries are the programs of one PostgreSQL installation.
type binaries struct {
	dir   string
	major int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// systemDirs are where installers put PostgreSQL without adding it to PATH:
// Debian, Red Hat, Alpine, from source, Homebrew (Apple silicon, Intel),
// Postgres.app, EDB's installer, MacPorts.
var systemDirs = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/usr/local/pgsql/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/Library/PostgreSQL/*/bin",
	"/opt/local/lib/postgresql*/bin",
}

// findBinaries returns the binaries to use. wanted is a folder or npm; when it
// is empty the order is PATH, pg_config, systemDirs (newest first), npm. But a
// version that already has data in the folder comes first, so that installing
// another PostgreSQL does not seem to empty the shop.
func findBinaries(ctx context.Context, folder *Folder, who account, wanted string, log *slog.Logger) (binaries, error) {
	switch wanted {
	case "":
	case "npm":
		return fetchBinaries(ctx, folder, who, log)
	default:
		dir, err := filepath.Abs(wanted)
		if err != nil {
			return binaries{}, fmt.Errorf("finding binaries: %w", err)
		}
		return examine(ctx, who, dir)
	}
	var found []binaries
	for _, dir := range installedDirs(ctx) {
		if b, err := examine(ctx, who, dir); err == nil {
			found = append(found, b)
		}
	}
	if b, err := examine(ctx, who, filepath.Join(npmDir(folder), "bin")); err == nil {
		found = append(found, b)
	}
	for _, b := range found {
		if _, err := os.Stat(newCluster(folder, b.major).dir); err == nil {
			return b, nil
		}
	}
	if len(found) > 0 {
		return found[0], nil
	}
	return fetchBinaries(ctx, folder, who, log)
}

func installedDirs(ctx context.Context) []string {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	var system []string
	for _, pattern := range systemDirs {
		matches, _ := filepath.Glob(pattern)
		system = append(system, matches...)
	}
	slices.SortStableFunc(system, func(a, b string) int { return numberIn(b) - numberIn(a) })
	return append(dirs, system...)
}

var digits = regexp.MustCompile(`\d+`)

func numberIn(s string) int {
	n, _ := strconv.Atoi(digits.FindString(s))
	return n
}

// examine returns the binaries in dir, if the account can run them and they
// are new enough.
func examine(ctx context.Context, who account, dir string) (binaries, error) {
	b := binaries{dir: dir}
	if _, err := os.Stat(b.path("initdb")); err != nil {
		return b, fmt.Errorf("%w: %w", ErrNoBinaries, err)
	}
	out, err := output(ctx, who.command("/", b.path("postgres"), "--version"))
	if err != nil {
		return b, fmt.Errorf("%w: running %s: %w", ErrNoBinaries, b.path("postgres"), err)
	}
	if b.major = numberIn(out); b.major < oldest {
		return b, fmt.Errorf("%w: %s is %s", ErrNoBinaries, b.path("postgres"), out)
	}
	return b, nil
}
