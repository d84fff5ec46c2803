//go:build darwin || freebsd || linux

package localpg

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// serverAccount returns the account that runs the server.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return account{}, fmt.Errorf("finding an account for PostgreSQL, which refuses to run as root: %w", err)
	}
	// Numbers are parsed with a sign because macOS gives nobody the id -2.
	uid, err := strconv.ParseInt(nobody.Uid, 10, 64)
	if err != nil {
		return account{}, fmt.Errorf("finding an account for PostgreSQL: %w", err)
	}
	gid, err := strconv.ParseInt(nobody.Gid, 10, 64)
	if err != nil {
		return account{}, fmt.Errorf("finding an account for PostgreSQL: %w", err)
	}
	return account{uid: int(uint32(uid)), gid: int(uint32(gid)), other: true}, nil
}

// command returns a command that runs as the account, in a session of its own
// (the terminal's Ctrl-C is meant for the shop), in a folder that it can enter,
// and without the caller's PG* variables.
func (a account) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	// LC_ALL: messages in English, since we read some of them; and on macOS a
	// server without it refuses to start.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	Detach(cmd)
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return cmd
}

// own gives a file to the account.
func (a account) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// reach returns ErrUnreachable, with the folder that is closed, if the account
// cannot pass through every folder of path.
func (a account) reach(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		if err := a.enter(dir); err != nil {
			return err
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (a account) enter(dir string) error {
	stat, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	sys, ok := stat.Sys().(*syscall.Stat_t)
	if !a.other || !ok {
		return nil
	}
	mode := stat.Mode().Perm()
	switch {
	case int(sys.Uid) == a.uid && mode&0o100 != 0,
		int(sys.Uid) != a.uid && int(sys.Gid) == a.gid && mode&0o010 != 0,
		int(sys.Uid) != a.uid && int(sys.Gid) != a.gid && mode&0o001 != 0:
		return nil
	}
	return fmt.Errorf("%w: PostgreSQL refuses to run as root, so it runs as %s, who cannot enter %s; "+
		"set DATA_DIR to a folder that everybody can reach, such as /var/cache/payonce",
		ErrUnreachable, userName(a.uid), dir)
}

// signal sends a signal to a process of the account. Root sends it through a
// shell of that account: the number comes from a file that the account may
// write, and must not reach a process that is not its own.
func (a account) signal(pid int, sig syscall.Signal) error {
	if !a.other {
		return syscall.Kill(pid, sig)
	}
	return a.command("/", "/bin/sh", "-c", `kill -"$0" "$1"`, strconv.Itoa(int(sig)), strconv.Itoa(pid)).Run()
}

// Detach gives cmd, before it is started, a session of its own, so that what
// is typed at our terminal and the end of our process leave it alone.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}
