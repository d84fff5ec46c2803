//go:build darwin || freebsd || linux

package localpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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
	if err := c.initdb(ctx, who, bin, password, volatile, unfinished); err != nil {
		_ = os.RemoveAll(unfinished) // or else by the next makeUnfinished
		return fmt.Errorf("creating the data folder %s: %w", c.dir, err)
	}
	if err := os.Rename(unfinished, c.dir); err != nil {
		return fmt.Errorf("creating the data folder: %w", err)
	}
	return nil
}

func (c cluster) initdb(ctx context.Context, who account, bin binaries, password string, volatile bool, dir string) error {
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

// postmaster is what a server wrote about itself into postmaster.pid.
type postmaster struct {
	pid  int
	port int
}

// postmaster reads postmaster.pid. It may be stale, or half written: absent
// numbers are 0. The lines are listed in PostgreSQL's src/include/utils/pidfile.h.
func (c cluster) postmaster() (postmaster, error) {
	file, err := os.Open(c.pidFile())
	if errors.Is(err, fs.ErrNotExist) {
		return postmaster{}, nil
	}
	if err != nil {
		return postmaster{}, fmt.Errorf("reading the server's process file: %w", err)
	}
	defer func() { _ = file.Close() }()
	var p postmaster
	lines := bufio.NewScanner(file)
	for n := 1; n <= 4 && lines.Scan(); n++ {
		number, _ := strconv.Atoi(strings.TrimSpace(lines.Text()))
		switch {
		case n == 1 && number > 1: // a single-user server writes its number negated
			p.pid = number
		case n == 4:
			p.port = number
		}
	}
	return p, lines.Err()
}

// removeStalePidFile removes what a server that is gone has left, and tells
// whether there was something: such a server did not stop cleanly. PostgreSQL
// itself refuses to start when the file is empty (after a power cut) or names a
// process that is alive, which may be any by now.
func (c cluster) removeStalePidFile() (found bool, err error) {
	p, err := c.postmaster()
	if err != nil {
		return false, err
	}
	if p.pid != 0 && worksIn(p.pid, c.dir) {
		return true, fmt.Errorf("a server was just started in %s by other means: try again", c.dir)
	}
	err = os.Remove(c.pidFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("removing a stale process file: %w", err)
	}
	return true, nil
}

func (c cluster) pidFile() string { return filepath.Join(c.dir, "postmaster.pid") }

// running tells whether a process works in the data folder. A server that we
// started has inherited a locked file, and the kernel keeps the lock until the
// last of its processes has ended; process numbers are used again, and a
// zombie has one too. A server that somebody else started is told by its
// working folder.
func (c cluster) running() (ours, running bool, err error) {
	lock, err := openLock(c.lock)
	if err != nil {
		return false, false, err
	}
	defer lock.release()
	free, err := lock.tryExclusive()
	if err != nil {
		return false, false, err
	}
	if !free {
		return true, true, nil
	}
	p, err := c.postmaster()
	if err != nil {
		return false, false, err
	}
	return false, p.pid != 0 && worksIn(p.pid, c.dir), nil
}

// worksIn tells whether a process has its working folder in dir, as every
// process of a PostgreSQL has in its data folder.
func worksIn(pid int, dir string) bool {
	if _, err := os.Stat("/proc/self/cwd"); err == nil {
		theirs, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
		if err != nil { // gone, a zombie, or another user's
			return false
		}
		ours, err := os.Stat(dir)
		return err == nil && os.SameFile(theirs, ours)
	}
	// Without /proc the command line has to do: a postmaster's names its folder.
	out, err := exec.Command("ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), dir)
}
