package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is the program as it was started once.
type process struct {
	cmd      *exec.Cmd
	out, err output
	ended    chan struct{} // closed when it has ended and been waited for
}

// output keeps what a process prints; it may be read while the process runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts the shop's program. Whoever starts it ends it.
func start(t testing.TB, env settings, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(builtProgram(t), args...), ended: make(chan struct{})}
	p.cmd.Env = env.environment()
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.WaitDelay = 5 * time.Second
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // the status is in ProcessState
		close(p.ended)
	}()
	return p
}

// report shows what the process printed.
func (p *process) report(t testing.TB) {
	t.Helper()
	t.Logf("process %d, %v\n%s\n%s", p.cmd.Process.Pid, p.cmd.Args[1:], &p.out, lastLines(p.err.String()))
}

// lastLines cuts a log down to what happened last.
func lastLines(log string) string {
	const most = 60
	lines := strings.SplitAfter(log, "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "")
}

// kill ends the process as a power cut would.
func (p *process) kill(t testing.TB) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
}

func (p *process) signal(t testing.TB, s os.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// wait returns the exit status of the process, -1 if a signal ended it.
func (p *process) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		require.Fail(t, "the process does not end", "%s", &p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// patience is how long a test waits for what must happen. Nothing is asserted
// about how long it takes.
const patience = time.Minute

// eventually asks until the answer is yes.
func eventually(t testing.TB, what string, ask func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-deadline.C:
			require.Fail(t, "waited in vain", what)
		}
	}
}
