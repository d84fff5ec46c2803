//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// launch starts a server in the folder, where none runs.
func (s *starter) launch(ctx context.Context) error {
	bin, err := findBinaries(ctx, s.folder, s.who, s.Binaries, s.Log)
	if err != nil {
		return err
	}
	s.cluster = newCluster(s.folder, bin.major)
	last, err := s.prepare(ctx, bin)
	if err != nil {
		return err
	}
	const tries = 5
	for try := 1; ; try++ {
		s.port, err = freePort(last)
		if err != nil {
			return err
		}
		err = s.launchOn(ctx, bin, s.port)
		// Between finding a free port and using it somebody else may take it.
		if errors.Is(err, errPortTaken) && try < tries {
			last = 0
			continue
		}
		return err
	}
}

// prepare sees to it that there is a data folder to start from, and returns
// the port of the last server, or 0.
func (s *starter) prepare(ctx context.Context, bin binaries) (lastPort int, err error) {
	exists, err := s.cluster.exists(s.who)
	if err != nil {
		return 0, err
	}
	crashed, err := s.cluster.removeStalePidFile()
	if err != nil {
		return 0, err
	}
	discard := crashed && s.Volatile && s.cluster.volatile()
	if crashed {
		s.Log.Info("the last PostgreSQL did not stop cleanly", "data", s.cluster.dir, "discarded", discard)
	}
	if discard {
		// What was not written to the disk may be missing from the middle.
		if err := os.RemoveAll(s.cluster.dir); err != nil {
			return 0, fmt.Errorf("discarding the data folder: %w", err)
		}
		exists = false
	}
	if !exists {
		s.Log.Info("creating a PostgreSQL data folder", "data", s.cluster.dir, "binaries", bin.dir)
		if err := s.cluster.create(ctx, s.who, bin, s.password, s.Volatile); err != nil {
			return 0, err
		}
	}
	return s.cluster.lastPort(), nil
}

var errPortTaken = errors.New("port taken")

// launchOn starts a server on a port and waits until it answers. If it does
// not, or ctx ends first, no process of it is left.
func (s *starter) launchOn(ctx context.Context, bin binaries, port int) error {
	log, err := s.openLog()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	before, err := log.Seek(0, 2)
	if err != nil {
		return fmt.Errorf("opening the server's log: %w", err)
	}
	alive, err := openLock(s.cluster.lock)
	if err != nil {
		return err
	}
	if free, err := alive.tryExclusive(); err != nil || !free {
		alive.release()
		return errors.Join(err, fmt.Errorf("a process of the last server still works in %s", s.cluster.dir))
	}
	cmd := s.who.command(s.cluster.dir, bin.path("postgres"), s.arguments(port)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{alive.file}
	err = cmd.Start()
	alive.handOver()
	if err != nil {
		return fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // or it would stay a zombie while we live
		close(exited)
	}()
	if err := s.ready(ctx, port, exited); err != nil {
		return errors.Join(s.explain(err, before), s.cluster.stop(ctx, s.who, cmd.Process.Pid))
	}
	return nil
}

var errExited = errors.New("PostgreSQL ended")

func (s *starter) ready(ctx context.Context, port int, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer for %s", startTimeout))
	defer cancel()
	return poll(ctx, 10*time.Millisecond, func() (bool, error) {
		select {
		case <-exited:
			return false, errExited
		default:
		}
		p, err := s.cluster.postmaster()
		if err != nil || p.port != port || !p.ready {
			return false, err
		}
		return s.cluster.answers(ctx, port, s.password)
	})
}

// explain puts the server's own words, from the log since before, in place of
// the fact that it ended.
func (s *starter) explain(err error, before int64) error {
	if !errors.Is(err, errExited) {
		return err
	}
	text, readErr := os.ReadFile(s.cluster.log)
	if readErr != nil || int64(len(text)) < before {
		return err
	}
	since := string(text[before:])
	if strings.Contains(since, "could not create any TCP/IP sockets") {
		err = errPortTaken
	}
	return fmt.Errorf("%w: %s (see %s)", err, complaint(since), s.cluster.log)
}

// arguments are the server's settings. They are given on every start rather
// than written into the data, so that a newer shop brings its own.
func (s *starter) arguments(port int) []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		// No socket file: its path may hold 107 bytes, and home folders do not
		// keep to that.
		"unix_socket_directories=",
		"cluster_name=payonce",
		// Tests open many pools at once; an idle slot costs a few kilobytes.
		"max_connections=300",
		"timezone=UTC",
		"log_timezone=UTC",
		"log_destination=stderr",
		"logging_collector=off",
		"log_checkpoints=off", // a clone makes two
	}
	if s.Volatile {
		settings = append(settings,
			"fsync=off", "synchronous_commit=off", "full_page_writes=off",
			"wal_level=minimal", "max_wal_senders=0")
	}
	args := []string{"-D", s.cluster.dir}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// logLimit is when a log starts anew, at the next start of the server.
const logLimit = 8 << 20

func (s *starter) openLog() (*os.File, error) {
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if stat, err := os.Stat(s.cluster.log); err == nil && stat.Size() > logLimit {
		mode |= os.O_TRUNC
	}
	log, err := os.OpenFile(s.cluster.log, mode, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	return log, nil
}

// freePort returns preferred if nobody listens there, else a port that the
// system chooses. A server that comes back on its old port is found by the
// pools of the shops that lost it.
func freePort(preferred int) (int, error) {
	for _, port := range []int{preferred, 0} {
		listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			if port != 0 {
				continue
			}
			return 0, fmt.Errorf("finding a free port: %w", err)
		}
		defer func() { _ = listener.Close() }()
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			panic("localpg: bug: a TCP listener without a TCP address")
		}
		return address.Port, nil
	}
	panic("localpg: bug: no port was asked for")
}

// lastPort reads postmaster.opts, where a server leaves its arguments.
func (c cluster) lastPort() int {
	text, err := os.ReadFile(c.dir + "/postmaster.opts")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "port=")
	return numberIn(strings.SplitN(after, "\"", 2)[0])
}
