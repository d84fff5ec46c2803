//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// stop ends the server if we or another user of the folder started it, and
// waits until all of its processes are gone. It takes its time even if ctx has
// ended, since half a stop would leave a process behind. child is the server's
// process if we have just started it, else 0.
func (c cluster) stop(ctx context.Context, who account, child int) error {
	ctx = context.WithoutCancel(ctx)
	for _, sig := range []syscall.Signal{
		syscall.SIGINT,  // fast: sessions are ended, data is written
		syscall.SIGQUIT, // immediate: as after a crash
		syscall.SIGKILL,
	} {
		if ours, _, err := c.running(); err != nil || !ours {
			return err
		}
		pid := child
		if pid == 0 {
			p, err := c.postmaster()
			if err != nil {
				return err
			}
			pid = p.pid
		}
		if pid != 0 {
			_ = who.signal(pid, sig) // it may have ended just now
		}
		if err := c.gone(ctx, stopTimeout); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the server in %s does not end, see %s", c.dir, c.log)
}

// stopTimeout is how long a signal is given to do its work. Writing the data
// of a shop to the disk takes well under a second.
const stopTimeout = 15 * time.Second

func (c cluster) gone(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return poll(ctx, 10*time.Millisecond, func() (bool, error) {
		ours, _, err := c.running()
		return !ours, err
	})
}
