//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStopWhenIdle(t *testing.T) {
	t.Parallel()

	t.Run("StopsTheServerOfAKilledUser", func(t *testing.T) {
		t.Parallel()
		dir := stoppedDir(t)
		killed := newHolder(t, ourselves(), Options{DataDir: dir, Volatile: true})
		require.Empty(t, killed.started(t).Err)
		killed.kill(t)
		requireRunning(t, dir, true)
		require.NoError(t, StopWhenIdle(t.Context(), dir, time.Millisecond))
		requireRunning(t, dir, false)
	})

	t.Run("WaitsForEveryUserAndOneWatchIsEnough", func(t *testing.T) {
		t.Parallel()
		dir := stoppedDir(t)
		folder, err := OpenFolder(dir)
		require.NoError(t, err)
		server, err := Start(t.Context(), Options{DataDir: dir, Volatile: true})
		require.NoError(t, err)

		watched, err := folder.Watched()
		require.NoError(t, err)
		require.False(t, watched)
		done := make(chan error, 1)
		go func() { done <- StopWhenIdle(t.Context(), dir, time.Millisecond) }()
		eventually(t, folder.Watched, "the watch")
		require.NoError(t, StopWhenIdle(t.Context(), dir, time.Hour), "a second watch has nothing to do")

		unused, err := folder.unused(t.Context(), func() error { return errors.New("stopped in use") })
		require.NoError(t, err)
		require.False(t, unused)
		require.Equal(t, 1, query[int](t, server.URL(""), "SELECT 1"))
		// As when a test program ends, which never calls Stop.
		server.use.lock.release()
		held.Delete(server.use.lock)
		require.NoError(t, <-done)
		requireRunning(t, dir, false)
		watched, err = folder.Watched()
		require.NoError(t, err)
		require.False(t, watched, "the next user must start a watch of its own")
	})

	t.Run("EndsWithItsContext", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, StopWhenIdle(ctx, folder.Path(), time.Hour), context.Canceled)
	})
}
