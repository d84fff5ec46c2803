//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStart(t *testing.T) {
	t.Parallel()

	for name, who := range accounts(t) {
		t.Run(name+"MakesRunsAndStopsAServer", func(t *testing.T) {
			t.Parallel()
			dir := emptyDir(t, who)

			first := newHolder(t, who, Options{DataDir: dir})
			r := first.started(t)
			require.Empty(t, r.Err)
			require.Equal(t, "payonce", query[string](t, r.URL, "SELECT current_database()"))
			require.Equal(t, "on", query[string](t, r.URL, "SHOW fsync"))
			execute(t, r.URL, "CREATE TABLE kept (n int)")
			first.stop(t)
			requireRunning(t, dir, false)

			second := newHolder(t, who, Options{DataDir: dir})
			again := second.started(t)
			require.Empty(t, again.Err)
			require.Equal(t, int64(0), query[int64](t, again.URL, "SELECT count(*) FROM kept"))
			second.stop(t)
			requireRunning(t, dir, false)
		})
	}

	t.Run("StartersAtOnceShareOneServerAndTheLastOneOutStopsIt", func(t *testing.T) {
		t.Parallel()
		dir := stoppedDir(t)
		var holders []*holder
		for range 3 {
			holders = append(holders, newHolder(t, ourselves(), Options{DataDir: dir}))
		}
		first := holders[0].started(t)
		require.Empty(t, first.Err)
		for _, h := range holders[1:] {
			require.Equal(t, first, h.started(t))
		}
		for _, h := range holders {
			require.Equal(t, 1, query[int](t, first.URL, "SELECT 1"))
			h.stop(t)
		}
		requireRunning(t, dir, false)
	})

	t.Run("AServerOutlivesAKilledUserAndIsAdopted", func(t *testing.T) {
		t.Parallel()
		dir := stoppedDir(t)
		killed := newHolder(t, ourselves(), Options{DataDir: dir})
		r := killed.started(t)
		require.Empty(t, r.Err)
		began := query[string](t, r.URL, "SELECT pg_postmaster_start_time()::text")
		killed.kill(t)
		requireRunning(t, dir, true)

		server := start(t, dir)
		require.Equal(t, began, query[string](t, server.URL(""), "SELECT pg_postmaster_start_time()::text"))
		// The killed user's hold is gone too, so we are the last.
		require.NoError(t, server.Stop(t.Context()))
		requireRunning(t, dir, false)
	})

	t.Run("AKilledServerRecoversOnItsOldPort", func(t *testing.T) {
		t.Parallel()
		dir := stoppedDir(t)
		before := start(t, dir)
		execute(t, before.URL(""), "CREATE TABLE kept AS SELECT 42 AS n")
		p, err := before.cluster.postmaster()
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))

		after := start(t, dir)
		require.Equal(t, before.URL(""), after.URL(""))
		require.Equal(t, 42, query[int](t, before.URL(""), "SELECT n FROM kept"))
		require.NoError(t, after.Stop(t.Context()))
		requireRunning(t, dir, true)
		require.NoError(t, before.Stop(t.Context()))
		requireRunning(t, dir, false)
	})

	t.Run("AStaleProcessFileDoesNotStopIt", func(t *testing.T) {
		t.Parallel()
		dir := stoppedDir(t)
		// After a power cut the file may be empty.
		require.NoError(t, os.WriteFile(onlyCluster(t, dir).pidFile(), nil, 0o644))
		require.NoError(t, start(t, dir).Stop(t.Context()))

		// Or its number may be in use again, by a process of the server's own
		// account: PostgreSQL ignores those of others.
		who, err := serverAccount()
		require.NoError(t, err)
		stranger := who.command("/", "sleep", "600")
		require.NoError(t, stranger.Start())
		defer func() {
			require.NoError(t, stranger.Process.Kill())
			_ = stranger.Wait()
		}()
		writePidFile(t, dir, stranger.Process.Pid, 1)
		require.NoError(t, start(t, dir).Stop(t.Context()))
	})

	t.Run("AnotherServerOnThePortIsNotAdopted", func(t *testing.T) {
		t.Parallel()
		theirs := start(t, stoppedDir(t))
		// A copy has the same password, so that only the folder tells them apart.
		dir := stoppedDir(t)
		c := onlyCluster(t, dir)
		p, err := theirs.cluster.postmaster()
		require.NoError(t, err)
		writePidFile(t, dir, p.pid, p.port)

		answered, err := c.answers(t.Context(), theirs.port, theirs.password)
		require.NoError(t, err)
		require.False(t, answered)
		ours := start(t, dir)
		require.NotEqual(t, theirs.port, ours.port)
		require.Equal(t, c.dir, query[string](t, ours.URL(""), "SHOW data_directory"))
		require.NoError(t, ours.Stop(t.Context()))
		require.NoError(t, theirs.Stop(t.Context()))
	})

	t.Run("AServerStartedByHandIsAdoptedAndLeftRunning", func(t *testing.T) {
		t.Parallel()
		dir := stoppedDir(t)
		c := onlyCluster(t, dir)
		who, err := serverAccount()
		require.NoError(t, err)
		folder, err := OpenFolder(dir)
		require.NoError(t, err)
		bin, err := findBinaries(t.Context(), folder, who, os.Getenv("LOCALPG"), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		port, err := freePort(0)
		require.NoError(t, err)
		byHand := who.command(c.dir, bin.path("postgres"), "-D", c.dir, "-p", strconv.Itoa(port), "-k", "")
		require.NoError(t, byHand.Start())
		defer func() {
			require.NoError(t, byHand.Process.Signal(syscall.SIGINT))
			require.NoError(t, byHand.Wait())
		}()
		eventually(t, func() (bool, error) {
			p, err := c.postmaster()
			return p.port == port, err
		}, "the server's process file")

		server := start(t, dir)
		require.Equal(t, port, server.port)
		require.NoError(t, server.Stop(t.Context()))
		require.Equal(t, 1, query[int](t, server.URL(""), "SELECT 1"))
	})

	t.Run("OthersNeedThePasswordAndTheSameVersion", func(t *testing.T) {
		t.Parallel()
		dir := stoppedDir(t)
		server := start(t, dir)
		answered, err := server.cluster.answers(t.Context(), server.port, "guess")
		require.False(t, answered)
		require.ErrorContains(t, err, "password")
		requireOneLine(t, err.Error())
		stat, err := os.Stat(filepath.Join(dir, "password"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), stat.Mode().Perm())

		_, err = Start(t.Context(), Options{DataDir: dir, Binaries: fakeBinaries(t, "", "")})
		require.ErrorContains(t, err, fmt.Sprintf("PostgreSQL %d already runs", server.Major()))
		requireOneLine(t, err.Error())
		require.NoError(t, server.Stop(t.Context()))
		requireRunning(t, dir, false)
	})

	t.Run("AFolderThatTheServersAccountCannotEnterIsOneLine", func(t *testing.T) {
		t.Parallel()
		closed := t.TempDir()
		require.NoError(t, os.Chmod(closed, 0o700))
		stranger := account{uid: os.Geteuid() + 4242, gid: os.Getegid() + 4242, other: true}
		err := stranger.reach(filepath.Join(closed))
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorContains(t, err, "set DATA_DIR")
		requireOneLine(t, err.Error())
		require.NoError(t, stranger.reach("/usr"))
	})

	t.Run("AFolderOfAnotherUserIsOneLine", func(t *testing.T) {
		t.Parallel()
		r := newHolder(t, accounts(t)["OrdinaryUser"], Options{DataDir: "/usr"}).started(t)
		require.Contains(t, r.Err, ErrForeign.Error())
		require.Contains(t, r.Err, "set DATA_DIR")
		requireOneLine(t, r.Err)
	})

	t.Run("DataOfAnotherUserIsOneLine", func(t *testing.T) {
		t.Parallel()
		c := newCluster(&Folder{path: t.TempDir()}, 15)
		require.NoError(t, os.Mkdir(c.dir, 0o700))
		_, err := c.exists(account{uid: os.Geteuid() + 4242})
		require.ErrorIs(t, err, ErrForeign)
		requireOneLine(t, err.Error())
	})

	t.Run("AVolatileServerDoesNotWaitForTheDisk", func(t *testing.T) {
		t.Parallel()
		server, err := Start(t.Context(), Options{DataDir: stoppedDir(t), Volatile: true})
		require.NoError(t, err)
		require.Equal(t, "off", query[string](t, server.URL(""), "SHOW fsync"))
		require.NoError(t, server.Stop(t.Context()))
	})
}

func TestDataAfterACrash(t *testing.T) {
	t.Parallel()
	crashed := func(t *testing.T) cluster {
		t.Helper()
		dir := emptyDir(t, ourselves())
		folder, err := OpenFolder(dir)
		require.NoError(t, err)
		who, err := serverAccount()
		require.NoError(t, err)
		c := newCluster(folder, 16)
		require.NoError(t, os.Mkdir(c.dir, 0o700))
		require.NoError(t, os.WriteFile(c.pidFile(), nil, 0o600))
		require.NoError(t, who.own(c.dir))
		return c
	}
	start := func(t *testing.T, c cluster) error {
		t.Helper()
		fake := fakeBinaries(t, "echo 'initdb: error: made anew' >&2; exit 1", "echo 'FATAL:  recovered'; exit 1")
		_, err := Start(t.Context(), Options{DataDir: filepath.Dir(c.dir), Binaries: fake, Volatile: true})
		return err
	}

	t.Run("IsDiscardedIfItWasMadeVolatile", func(t *testing.T) {
		t.Parallel()
		c := crashed(t)
		require.NoError(t, os.WriteFile(c.volatileMark(), nil, 0o600))
		require.ErrorContains(t, start(t, c), "made anew")
		require.NoDirExists(t, c.dir)
	})

	t.Run("IsKeptIfItWasMadeToLastWhateverIsAskedFor", func(t *testing.T) {
		t.Parallel()
		c := crashed(t)
		require.ErrorContains(t, start(t, c), "recovered")
		require.DirExists(t, c.dir)
	})
}

// writePidFile leaves in a folder what a server that ended badly leaves.
func writePidFile(t *testing.T, dir string, pid, port int) {
	t.Helper()
	c := onlyCluster(t, dir)
	text := fmt.Sprintf("%d\n%s\n1700000000\n%d\n", pid, c.dir, port)
	require.NoError(t, os.WriteFile(c.pidFile(), []byte(text), 0o644))
}

// fakeBinaries returns a folder with programs that behave like an installed
// PostgreSQL up to the point where the given shell commands take over.
func fakeBinaries(t *testing.T, initdb, postgres string) string {
	t.Helper()
	dir := emptyDir(t, ourselves())
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, commands := range map[string]string{"initdb": initdb, "postgres": postgres} {
		script := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'postgres (PostgreSQL) 16.0'; exit; fi\n" + commands + "\n"
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
		require.NoError(t, os.Chmod(path, 0o755))
	}
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func TestStartThatFails(t *testing.T) {
	t.Parallel()

	// The first argument is --pgdata=dir.
	const halfMade = `dir=${1#--pgdata=}; echo 16 > "$dir/PG_VERSION"; mkdir "$dir/base"; `

	t.Run("OnAFullDiskSaysSoAndLeavesNoData", func(t *testing.T) {
		t.Parallel()
		dir := emptyDir(t, ourselves())
		full := fakeBinaries(t, halfMade+`echo "creating subdirectories ... ok"
			echo 'initdb: error: could not write file "base/1/1259": No space left on device' >&2
			echo "initdb: removing contents of data directory" >&2
			exit 1`, "")
		_, err := Start(t.Context(), Options{DataDir: dir, Binaries: full})
		require.ErrorContains(t, err, "No space left on device")
		requireOneLine(t, err.Error())
		require.NotContains(t, names(t, dir), "pg16")
	})

	t.Run("InALaterStepSaysWhatTheServerSaid", func(t *testing.T) {
		t.Parallel()
		dir := emptyDir(t, ourselves())
		failing := fakeBinaries(t, halfMade, `
			echo '2026-01-01 00:00:00.000 UTC [1] FATAL:  the database system is starting up'
			echo '2026-01-01 00:00:00.000 UTC [1] FATAL:  could not write lock file "postmaster.pid": No space left on device'
			exit 1`)
		_, err := Start(t.Context(), Options{DataDir: dir, Binaries: failing})
		require.ErrorContains(t, err, "could not write lock file")
		requireOneLine(t, err.Error())
		requireRunning(t, dir, false)
	})

	t.Run("KilledInInitdbLeavesNothingThatIsTakenForData", func(t *testing.T) {
		t.Parallel()
		dir := emptyDir(t, ourselves())
		hanging := fakeBinaries(t, halfMade+`echo $$ > "$dir/pid"; exec sleep 600`, "")
		h := newHolder(t, ourselves(), Options{DataDir: dir, Binaries: hanging})
		var orphan int
		eventually(t, func() (bool, error) {
			files, err := filepath.Glob(filepath.Join(dir, "pg16.new-*", "pid"))
			if err != nil || len(files) == 0 {
				return false, err
			}
			text, err := os.ReadFile(files[0])
			orphan = numberIn(string(text))
			return orphan != 0, err
		}, "initdb")
		h.kill(t)
		defer func() { require.NoError(t, syscall.Kill(orphan, syscall.SIGKILL)) }()
		require.NotContains(t, strings.Fields(names(t, dir)), "pg16")

		failing := fakeBinaries(t, "echo 'initdb: error: stop here' >&2; exit 1", "")
		_, err := Start(t.Context(), Options{DataDir: dir, Binaries: failing})
		require.ErrorContains(t, err, "stop here")
		require.NotContains(t, names(t, dir), "pg16")
	})

	t.Run("BecauseItsContextEndsLeavesNoProcess", func(t *testing.T) {
		t.Parallel()
		dir := emptyDir(t, ourselves())
		silent := fakeBinaries(t, halfMade, "echo up; exec sleep 600")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := Start(ctx, Options{DataDir: dir, Binaries: silent})
			done <- err
		}()
		log := filepath.Join(dir, "pg16.log")
		eventually(t, func() (bool, error) {
			text, _ := os.ReadFile(log)
			return string(text) == "up\n", nil
		}, "the server's first word")
		requireRunning(t, dir, true)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		requireRunning(t, dir, false)
	})

	t.Run("WithoutBinariesNamesThreeWaysOut", func(t *testing.T) {
		t.Parallel()
		_, err := Start(t.Context(), Options{DataDir: emptyDir(t, ourselves()), Binaries: t.TempDir()})
		require.ErrorIs(t, err, ErrNoBinaries)
		for _, way := range []string{"install one", "npm", "DATABASE_URL"} {
			require.ErrorContains(t, err, way)
		}
		requireOneLine(t, err.Error())
	})
}

func TestAPortThatIsTakenInBetweenIsTriedAgain(t *testing.T) {
	t.Parallel()
	dir := stoppedDir(t)
	server := start(t, dir)
	require.NoError(t, server.Stop(t.Context()))

	taken, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(server.port)))
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()

	folder, err := OpenFolder(dir)
	require.NoError(t, err)
	who, err := serverAccount()
	require.NoError(t, err)
	bin, err := findBinaries(t.Context(), folder, who, os.Getenv("LOCALPG"), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s := &starter{folder: folder, who: who, cluster: server.cluster, password: server.password}
	require.ErrorIs(t, s.launchOn(t.Context(), bin, server.port), errPortTaken)
	requireRunning(t, dir, false)

	again := start(t, dir)
	require.NotEqual(t, server.port, again.port)
	require.NoError(t, again.Stop(t.Context()))
}
