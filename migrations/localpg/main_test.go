//go:build darwin || freebsd || linux

package localpg

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// holderVariable turns the test program into a process that starts a server
// with the Options it names, says so, and stops it when its input ends.
const holderVariable = "LOCALPG_TEST_HOLDER"

func TestMain(m *testing.M) {
	if options := os.Getenv(holderVariable); options != "" {
		os.Exit(hold(options))
	}
	code := m.Run()
	made.Range(func(_, value any) bool {
		_ = os.RemoveAll(value.(*madeFolder).dir)
		return true
	})
	os.Exit(code)
}

// report is what a holder says, in one line of JSON.
type report struct {
	URL  string
	Port int
	Err  string
}

func hold(options string) int {
	var o Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		panic(err)
	}
	say := json.NewEncoder(os.Stdout)
	server, err := Start(context.Background(), o)
	if err != nil {
		_ = say.Encode(report{Err: err.Error()})
		return 1
	}
	_ = say.Encode(report{URL: server.URL(""), Port: server.port})
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := server.Stop(context.Background()); err != nil {
		_ = say.Encode(report{Err: err.Error()})
		return 1
	}
	return 0
}

// holder is another process that uses the server of a folder.
type holder struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

// newHolder starts a holder as an account, in a process group of its own.
func newHolder(t *testing.T, who account, o Options) *holder {
	t.Helper()
	options, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(testProgram(t))
	cmd.Env = append(os.Environ(), holderVariable+"="+string(options), "HOME="+filepath.Dir(o.DataDir))
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if who.uid != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}
	}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil { // the test has failed in between
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	})
	return &holder{cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
}

// started waits for what the holder says about its start.
func (h *holder) started(t *testing.T) report {
	t.Helper()
	line, err := h.out.ReadBytes('\n')
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(line, &r))
	return r
}

// stop lets the holder give the server up and waits for its end.
func (h *holder) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, h.stdin.Close())
	rest, err := io.ReadAll(h.out)
	require.NoError(t, err)
	require.NoError(t, h.cmd.Wait(), string(rest))
}

// kill ends the holder's whole process group at once.
func (h *holder) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL))
	require.Error(t, h.cmd.Wait())
}

// testProgram returns a copy of this program that every account can run; go
// test keeps the original in a folder of its own.
var testProgramOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "localpg-program-")
	if err != nil {
		return "", err
	}
	made.Store("program", &madeFolder{dir: dir})
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "localpg.test")
	// No fork meanwhile: a child would have the file open for writing until its
	// exec, and the kernel runs no file that is.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return path, errors.Join(os.WriteFile(path, content, 0o755), os.Chmod(path, 0o755), os.Chmod(dir, 0o711))
})

func testProgram(t *testing.T) string {
	t.Helper()
	path, err := testProgramOnce()
	require.NoError(t, err)
	return path
}

// accounts are the users that tests run as: ourselves, and if we are root an
// ordinary user as well.
func accounts(t *testing.T) map[string]account {
	t.Helper()
	ordinary, err := serverAccount()
	require.NoError(t, err)
	ordinary.other = false
	found := map[string]account{"OrdinaryUser": ordinary}
	if os.Geteuid() == 0 {
		found["Root"] = ourselves()
	}
	return found
}

func ourselves() account { return account{uid: os.Geteuid(), gid: os.Getegid()} }

// emptyDir returns the path of a folder that the account may make. It is not
// in t.TempDir, which lets nobody but us in. What runs there when the test
// ends is stopped.
func emptyDir(t *testing.T, who account) string {
	t.Helper()
	parent, err := os.MkdirTemp("", "localpg-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(parent, 0o711))
	if who.uid != os.Geteuid() {
		require.NoError(t, os.Chown(parent, who.uid, who.gid))
	}
	dir := filepath.Join(parent, "payonce")
	t.Cleanup(func() {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			stopAll(t, dir)
		}
		require.NoError(t, os.RemoveAll(parent))
	})
	return dir
}

func stopAll(t *testing.T, dir string) {
	t.Helper()
	found, err := clusters(&Folder{path: dir})
	require.NoError(t, err)
	who, err := serverAccount()
	require.NoError(t, err)
	for _, c := range found {
		require.NoError(t, c.stop(context.Background(), who, 0))
	}
}

type madeFolder struct {
	once sync.Once
	dir  string
	err  error
}

// made holds, by account, a folder with a stopped server, which tests copy:
// initdb takes longer than the rest of a test.
var made sync.Map

// stoppedDir returns a folder of ours that holds a server's data.
func stoppedDir(t *testing.T) string {
	t.Helper()
	value, _ := made.LoadOrStore("data", &madeFolder{})
	source := value.(*madeFolder)
	source.once.Do(func() {
		if source.dir, source.err = os.MkdirTemp("", "localpg-made-"); source.err != nil {
			return
		}
		if source.err = os.Chmod(source.dir, 0o711); source.err != nil {
			return
		}
		var server *Server
		if server, source.err = Start(context.Background(), Options{DataDir: source.dir, Volatile: true}); source.err == nil {
			source.err = server.Stop(context.Background())
		}
	})
	require.NoError(t, source.err)
	dir := emptyDir(t, ourselves())
	out, err := exec.Command("cp", "-a", source.dir, dir).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

// start starts a server in a folder. The test stops it, or else emptyDir.
func start(t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), Options{DataDir: dir})
	require.NoError(t, err)
	return server
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), sql)
	require.NoError(t, err)
	value, err := pgx.CollectOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return value
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// requireRunning requires that a process works in dir's data, or that none does.
func requireRunning(t *testing.T, dir string, want bool) {
	t.Helper()
	found, err := clusters(&Folder{path: dir})
	require.NoError(t, err)
	running := false
	for _, c := range found {
		_, r, err := c.running()
		require.NoError(t, err)
		running = running || r
	}
	require.Equal(t, want, running, "a server in %s", dir)
}

func requireOneLine(t *testing.T, text string) {
	t.Helper()
	require.NotEmpty(t, text)
	require.NotContains(t, text, "\n")
}

// onlyCluster returns the one data folder in dir.
func onlyCluster(t *testing.T, dir string) cluster {
	t.Helper()
	found, err := clusters(&Folder{path: dir})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return strings.Join(list, " ")
}

// eventually polls a condition.
func eventually(t *testing.T, ask func() (bool, error), what string) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, fmt.Errorf("waiting for %s", what))
	defer cancel()
	require.NoError(t, poll(ctx, 10*time.Millisecond, ask))
}
