//go:build darwin || freebsd || linux

package localpg

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// postmaster is what a server wrote about itself into postmaster.pid.
type postmaster struct {
	pid   int
	port  int
	ready bool // it listens and takes sessions
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
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		number, _ := strconv.Atoi(line)
		switch {
		case n == 1 && number > 1: // a single-user server writes its number negated
			p.pid = number
		case n == 4:
			p.port = number
		case n == 8:
			p.ready = line == "ready"
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
