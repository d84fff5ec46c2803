//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func newCluster(folder *Folder, major int) cluster {
	dir := filepath.Join(folder.path, "pg"+strconv.Itoa(major))
	return cluster{major: major, dir: dir, log: dir + ".log", lock: dir + ".lock"}
}

// clusters returns the data folders that are there, newest version first.
func clusters(folder *Folder) ([]cluster, error) {
	entries, err := os.ReadDir(folder.path)
	if err != nil {
		return nil, fmt.Errorf("reading the data folder: %w", err)
	}
	var found []cluster
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), "pg")
		if major, err := strconv.Atoi(digits); ok && err == nil && entry.IsDir() {
			found = append([]cluster{newCluster(folder, major)}, found...)
		}
	}
	return found, nil
}

// exists tells whether the cluster was made. It returns ErrForeign if another
// account made it.
func (c cluster) exists(who account) (bool, error) {
	if _, err := os.Lstat(c.dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, ownedBy(c.dir, who.uid)
}

// create makes the data folder under another name and renames it when it is
// whole: an initdb that was killed, or met a full disk, leaves nothing that
// would be taken for data. Only the holder of the start lock calls it.
func (c cluster) create(ctx context.Context, who account, bin binaries, password string, volatile bool) error {
	unfinished, err := makeUnfinished(c.dir)
	if err != nil {
		return fmt.Errorf("creating the data folder: %w", err)
	}
	err = initdb(ctx, who, bin, password, volatile, unfinished)
	if err == nil && volatile {
		err = os.WriteFile(cluster{dir: unfinished}.volatileMark(), nil, 0o644)
	}
	if err == nil {
		err = os.Rename(unfinished, c.dir)
	}
	if err != nil {
		_ = os.RemoveAll(unfinished) // or else by the next makeUnfinished
		return fmt.Errorf("creating the data folder %s: %w", c.dir, err)
	}
	return nil
}

// volatile tells whether the data was made to be thrown away. A Start that asks
// for a volatile server must not discard a shop's data because somebody named
// the wrong folder.
func (c cluster) volatile() bool {
	_, err := os.Stat(c.volatileMark())
	return err == nil
}

func (c cluster) volatileMark() string { return filepath.Join(c.dir, "volatile") }

func initdb(ctx context.Context, who account, bin binaries, password string, volatile bool, dir string) error {
	if err := who.own(dir); err != nil {
		return err
	}
	passwordFile := dir + ".password"
	defer func() { _ = os.Remove(passwordFile) }()
	if err := os.WriteFile(passwordFile, []byte(password), 0o600); err != nil {
		return err
	}
	if err := who.own(passwordFile); err != nil {
		return err
	}
	args := []string{
		"--pgdata=" + dir, "--username=" + role, "--pwfile=" + passwordFile,
		// Other users of the machine reach the port too: they need the password.
		"--auth=scram-sha-256",
		// The same order of text on every machine, whatever its locales.
		"--encoding=UTF8", "--locale=C",
		"--no-instructions",
	}
	if volatile {
		args = append(args, "--no-sync")
	}
	_, err := output(ctx, who.command("/", bin.path("initdb"), args...))
	return err
}

// makeUnfinished returns a new folder beside path, to be renamed to path when
// it is whole, and removes those that others left behind. Each has a name of
// its own: the one who made a leftover may be dead while its child still writes.
func makeUnfinished(path string) (string, error) {
	leftovers, err := filepath.Glob(path + ".new-*")
	if err != nil {
		return "", err
	}
	for _, leftover := range leftovers {
		_ = os.RemoveAll(leftover)
	}
	return os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
}
