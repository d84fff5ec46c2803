//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// lockFile is an open file whose lock (flock) the kernel drops when the last
// process that holds it open ends, however it ends. The file itself is never
// removed: a lock on a file that others no longer find would lock nothing.
type lockFile struct {
	file *os.File
}

func openLock(path string) (*lockFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	return &lockFile{file: file}, nil
}

func (l *lockFile) tryShared() (bool, error)    { return l.try(syscall.LOCK_SH) }
func (l *lockFile) tryExclusive() (bool, error) { return l.try(syscall.LOCK_EX) }

func (l *lockFile) try(how int) (bool, error) {
	for {
		err := syscall.Flock(int(l.file.Fd()), how|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("locking %s: %w", l.file.Name(), err)
		}
		return true, nil
	}
}

// exclusive waits for the lock. It asks again and again, because a blocked
// flock cannot be called off when ctx ends.
func (l *lockFile) exclusive(ctx context.Context) error {
	return poll(ctx, 10*time.Millisecond, l.tryExclusive)
}

// release gives the lock up even where another process has inherited it.
func (l *lockFile) release() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}

// handOver closes the file but leaves the lock to the process that has inherited it.
func (l *lockFile) handOver() { _ = l.file.Close() }

// poll asks until the answer is yes, an error, or ctx has ended.
func poll(ctx context.Context, pause time.Duration, ask func() (bool, error)) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// ownedByUs returns ErrForeign if the file at path is not ours.
func ownedByUs(path string) error { return ownedBy(path, os.Geteuid()) }

func ownedBy(path string, uid int) error {
	owner, err := ownerOf(path)
	if err != nil {
		return err
	}
	if owner != uid {
		return fmt.Errorf("%w: %s belongs to %s; set DATA_DIR to a folder of your own",
			ErrForeign, path, userName(owner))
	}
	return nil
}

func ownerOf(path string) (int, error) {
	stat, err := os.Lstat(path)
	if err != nil {
		return 0, fmt.Errorf("looking at the data folder: %w", err)
	}
	sys, ok := stat.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("looking at the data folder: %w", fs.ErrInvalid)
	}
	return int(sys.Uid), nil
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(uid)
}
