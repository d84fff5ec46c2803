//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// StopWhenIdle waits until no process has used the PostgreSQL in the folder
// for as long as idle, stops it, and returns nil. It is for users that cannot
// tell which of them is the last, such as the test programs of one run, and
// holds for those that were killed too. Of several calls in a folder one
// watches, the others return nil at once. Without a server it waits as well:
// the caller may be about to start one.
func StopWhenIdle(ctx context.Context, dataDir string, idle time.Duration) error {
	folder, err := OpenFolder(dataDir)
	if err != nil {
		return err
	}
	watch, err := openLock(folder.lockPath(lockName, "watch"))
	if err != nil {
		return err
	}
	defer watch.release()
	if first, err := watch.tryExclusive(); err != nil || !first {
		return err
	}
	since := time.Now()
	return poll(ctx, 250*time.Millisecond, func() (bool, error) {
		idleNow, err := folder.unused(ctx, func() error {
			if time.Since(since) < idle {
				return nil
			}
			if err := folder.stopServers(ctx); err != nil {
				return err
			}
			// Under the start lock still: who comes next must not take us for
			// a watch that goes on.
			watch.release()
			return errStopped
		})
		switch {
		case errors.Is(err, errStopped):
			return true, nil
		case !idleNow:
			since = time.Now()
		}
		return false, err
	})
}

var errStopped = errors.New("stopped")

// Watched tells whether some process is in StopWhenIdle for the folder.
func (f *Folder) Watched() (bool, error) {
	watch, err := openLock(f.lockPath(lockName, "watch"))
	if err != nil {
		return false, err
	}
	defer watch.release()
	free, err := watch.tryExclusive()
	return !free, err
}

// unused calls do, under the start lock, if no process has a hold on the server.
func (f *Folder) unused(ctx context.Context, do func() error) (unused bool, err error) {
	err = f.alone(ctx, lockName, func() error {
		use, err := openLock(f.lockPath(lockName, "use"))
		if err != nil {
			return err
		}
		defer use.release()
		if unused, err = use.tryExclusive(); err != nil || !unused {
			return err
		}
		return do()
	})
	return unused, err
}

func (f *Folder) stopServers(ctx context.Context) error {
	who, err := serverAccount()
	if err != nil {
		return err
	}
	found, err := clusters(f)
	if err != nil {
		return err
	}
	for _, c := range found {
		if err := c.stop(ctx, who, 0); err != nil {
			return fmt.Errorf("stopping PostgreSQL: %w", err)
		}
	}
	return nil
}
