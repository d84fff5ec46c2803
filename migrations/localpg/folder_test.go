//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func openFolder(t *testing.T) *Folder {
	t.Helper()
	folder, err := OpenFolder(filepath.Join(t.TempDir(), "a", "b"))
	require.NoError(t, err)
	return folder
}

func TestFolder(t *testing.T) {
	t.Parallel()

	t.Run("SecretIsMadeOnceHoweverManyAsk", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		secrets := make([]string, 16)
		var group sync.WaitGroup
		begin := make(chan struct{})
		for i := range secrets {
			group.Go(func() {
				<-begin
				secret, err := folder.Secret("session")
				if err != nil {
					t.Error(err)
				}
				secrets[i] = secret
			})
		}
		close(begin)
		group.Wait()
		for _, secret := range secrets {
			require.Len(t, secret, 64)
			require.Equal(t, secrets[0], secret)
		}
		require.Equal(t, "session", names(t, folder.Path()))
	})

	t.Run("IDStaysAndDiffersFromOthers", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		id, err := folder.ID()
		require.NoError(t, err)
		require.Len(t, id, 32)
		again, err := OpenFolder(folder.Path())
		require.NoError(t, err)
		same, err := again.ID()
		require.NoError(t, err)
		require.Equal(t, id, same)
		other, err := openFolder(t).ID()
		require.NoError(t, err)
		require.NotEqual(t, id, other)
	})

	t.Run("ADamagedSecretIsAnErrorAndNotAShortSecret", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		require.NoError(t, os.WriteFile(filepath.Join(folder.Path(), "session"), nil, 0o600))
		_, err := folder.Secret("session")
		require.ErrorContains(t, err, "damaged")
	})

	t.Run("TwoNamesOfOneFolderAreOneFolder", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		link := filepath.Join(t.TempDir(), "link")
		require.NoError(t, os.Symlink(folder.Path(), link))
		other, err := OpenFolder(link)
		require.NoError(t, err)
		require.Equal(t, folder.Path(), other.Path())
	})
}

func TestUse(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context) error { return nil }

	t.Run("OnlyTheLastReleaseStops", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		first, err := folder.Use(t.Context(), "stripe", nothing)
		require.NoError(t, err)
		second, err := folder.Use(t.Context(), "stripe", nothing)
		require.NoError(t, err)
		stopped := 0
		stop := func(context.Context) error { stopped++; return nil }
		require.NoError(t, first.Release(t.Context(), stop))
		require.Zero(t, stopped)
		require.NoError(t, second.Release(t.Context(), stop))
		require.Equal(t, 1, stopped)
	})

	t.Run("StartsAndStopsOfOneNameNeverOverlap", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		var inside, running atomic.Int32
		alone := func(change int32) func(context.Context) error {
			return func(context.Context) error {
				defer inside.Add(-1)
				if inside.Add(1) != 1 {
					return errors.New("not alone")
				}
				running.Add(change)
				return nil
			}
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 20 {
					use, err := folder.Use(t.Context(), "stripe", func(ctx context.Context) error {
						return alone(1 - running.Load())(ctx)
					})
					if err != nil {
						t.Error(err)
						return
					}
					if err := use.Release(t.Context(), alone(-1)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		require.Zero(t, running.Load())
	})

	t.Run("AHoldThatIsForgottenStays", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		_, err := folder.Use(t.Context(), lockName, nothing)
		require.NoError(t, err)
		// Twice: the first finds the file, the second runs after it was closed.
		runtime.GC()
		runtime.GC()
		unused, err := folder.unused(t.Context(), func() error { return nil })
		require.NoError(t, err)
		require.False(t, unused)
	})

	t.Run("NamesAreIndependent", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		_, err := folder.Use(t.Context(), "stripe", func(ctx context.Context) error {
			other, err := folder.Use(ctx, "postgres", nothing)
			if err != nil {
				return err
			}
			return other.Release(ctx, nothing)
		})
		require.NoError(t, err)
	})

	t.Run("AFailedStartHoldsNothing", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		broken := errors.New("broken")
		_, err := folder.Use(t.Context(), "stripe", func(context.Context) error { return broken })
		require.ErrorIs(t, err, broken)
		use, err := folder.Use(t.Context(), "stripe", nothing)
		require.NoError(t, err)
		stopped := false
		require.NoError(t, use.Release(t.Context(), func(context.Context) error { stopped = true; return nil }))
		require.True(t, stopped)
	})

	t.Run("WaitingForAnotherStartEndsWithTheContext", func(t *testing.T) {
		t.Parallel()
		folder := openFolder(t)
		_, err := folder.Use(t.Context(), "stripe", func(context.Context) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := folder.Use(ctx, "stripe", nothing)
			return err
		})
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestComplaintIsTheLineThatSaysWhatWasWrong(t *testing.T) {
	t.Parallel()
	for want, output := range map[string]string{
		`could not write file "base/1": No space left on device`: "creating ... ok\n" +
			"initdb: error: could not write file \"base/1\": No space left on device\ninitdb: removing data directory\n",
		"could not open directory": "2026 UTC [1] FATAL:  the database system is starting up\n" +
			"2026 UTC [1] LOG:  x\n2026 UTC [1] PANIC:  could not open directory\n2026 UTC [2] FATAL:  y\n",
		"code ENOTFOUND": "npm error code ENOTFOUND\nnpm error errno ENOTFOUND\n",
		"Segmentation":   "\n Segmentation \nfault",
		"":               "\n",
	} {
		require.Equal(t, want, complaint(output))
		require.False(t, strings.Contains(complaint(output), "\n"))
	}
}
