//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"path/filepath"
	"sync"
)

// Use is this process's hold on a server that the processes of a folder share.
// The kernel ends it with the process, so that a killed user counts no longer.
type Use struct {
	folder *Folder
	name   string
	lock   *lockFile
}

// held refers to the locks of this process's holds. Without it a program that
// has forgotten its Server, since it only needs the URL, would lose the hold to
// the garbage collector, which closes files that nobody refers to.
var held sync.Map

// Use takes a hold on the server called name. It calls start under a lock that
// only one process of the folder has at a time, start and stop included: start
// finds the server running and adopts it, or starts it. When start fails the
// hold is given up. Waiting for the lock ends with ctx.
func (f *Folder) Use(ctx context.Context, name string, start func(context.Context) error) (*Use, error) {
	u := &Use{folder: f, name: name}
	err := f.alone(ctx, name, func() error {
		lock, err := openLock(f.lockPath(name, "use"))
		if err != nil {
			return err
		}
		// Exclusive holds exist only under the start lock, which is ours.
		if _, err := lock.tryShared(); err != nil {
			lock.release()
			return err
		}
		if err := start(ctx); err != nil {
			lock.release()
			return err
		}
		u.lock = lock
		held.Store(lock, nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Release gives the hold up. It calls stop, under the same lock as start, if
// no other process has a hold: the last one out stops the server. When waiting
// for the lock ends with ctx, the hold is given up and the server is left to
// the next user.
func (u *Use) Release(ctx context.Context, stop func(context.Context) error) error {
	defer func() {
		held.Delete(u.lock)
		u.lock.release()
	}()
	return u.folder.alone(ctx, u.name, func() error {
		last, err := u.lock.tryExclusive()
		if err != nil || !last {
			return err
		}
		return stop(ctx)
	})
}

// alone calls f under the folder's start lock of name.
func (f *Folder) alone(ctx context.Context, name string, do func() error) error {
	start, err := openLock(f.lockPath(name, "start"))
	if err != nil {
		return err
	}
	defer start.release()
	if err := start.exclusive(ctx); err != nil {
		return err
	}
	return do()
}

func (f *Folder) lockPath(name, what string) string {
	return filepath.Join(f.path, name+"."+what+".lock")
}
