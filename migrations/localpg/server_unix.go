//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lockName is what the locks of the PostgreSQL in a folder are called.
const lockName = "postgres"

// Start returns a PostgreSQL that runs in the folder, whoever started it, and
// holds on to it until Stop or the end of the process. It adopts a running
// one, and otherwise recovers or creates the data and starts one; with a
// running server it takes milliseconds, without data a few seconds, and where
// binaries must be fetched as long as that takes. It honours ctx, and leaves
// no process behind when it fails.
//
// It returns ErrNoBinaries, ErrUnreachable, ErrForeign, on some systems
// ErrUnsupported, or what PostgreSQL complained about; each in one line.
func Start(ctx context.Context, o Options) (*Server, error) {
	folder, err := OpenFolder(o.DataDir)
	if err != nil {
		return nil, err
	}
	if o.Database == "" {
		o.Database = "payonce"
	}
	if o.Binaries == "" {
		o.Binaries = os.Getenv("LOCALPG")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &starter{Options: o, folder: folder}
	if s.who, err = serverAccount(); err != nil {
		return nil, err
	}
	if err := s.who.reach(folder.path); err != nil {
		return nil, err
	}
	if s.password, err = folder.Secret("password"); err != nil {
		return nil, err
	}
	use, err := folder.Use(ctx, lockName, s.start)
	if err != nil {
		return nil, fmt.Errorf("starting PostgreSQL: %w", err)
	}
	return &Server{
		folder: folder, use: use, who: s.who, database: o.Database,
		password: s.password, cluster: s.cluster, port: s.port,
	}, nil
}

// Stop gives the server up. The last user's Stop ends it and waits until it is
// gone; sessions that are still open are ended. Stop must be called at most once.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.use.Release(ctx, func(ctx context.Context) error {
		return s.cluster.stop(ctx, s.who, 0)
	}); err != nil {
		return fmt.Errorf("stopping PostgreSQL: %w", err)
	}
	return nil
}

// starter is one call of Start, from the moment it holds the start lock.
type starter struct {
	Options
	folder   *Folder
	who      account
	password string
	cluster  cluster
	port     int
}

func (s *starter) start(ctx context.Context) error {
	adopted, err := s.adopt(ctx)
	if err != nil {
		return err
	}
	if !adopted {
		if err := s.launch(ctx); err != nil {
			return err
		}
	}
	if err := s.createDatabase(ctx); err != nil {
		if adopted {
			return err
		}
		return errors.Join(err, s.cluster.stop(ctx, s.who, 0))
	}
	return nil
}

// adopt looks for a server that runs in the folder, of whatever version.
func (s *starter) adopt(ctx context.Context) (bool, error) {
	found, err := clusters(s.folder)
	if err != nil {
		return false, err
	}
	for _, c := range found {
		if _, err := c.exists(s.who); err != nil {
			return false, err
		}
		port, err := c.await(ctx, s.password)
		if err != nil {
			return false, err
		}
		if port != 0 {
			s.cluster, s.port = c, port
			return true, s.wanted(ctx)
		}
	}
	return false, nil
}

// wanted returns an error if the caller asked for certain binaries and the
// server that runs is of another version.
func (s *starter) wanted(ctx context.Context) error {
	if s.Binaries == "" {
		return nil
	}
	bin, err := findBinaries(ctx, s.folder, s.who, s.Binaries)
	if err != nil {
		return err
	}
	if bin.major != s.cluster.major {
		return fmt.Errorf("PostgreSQL %d already runs in %s, and %d was asked for: stop its users or set another DATA_DIR",
			s.cluster.major, s.folder.path, bin.major)
	}
	return nil
}

// await returns the port of the server that runs in the data folder, waiting
// while it starts, recovers or stops; 0 if none runs.
func (c cluster) await(ctx context.Context, password string) (port int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf(
		"the server in %s did not answer for %s, see %s", c.dir, startTimeout, c.log))
	defer cancel()
	err = poll(ctx, 20*time.Millisecond, func() (bool, error) {
		_, running, err := c.running()
		if err != nil || !running {
			return true, err
		}
		p, err := c.postmaster()
		if err != nil {
			return true, err
		}
		answered, err := c.answers(ctx, p.port, password)
		if answered {
			port = p.port
		}
		return answered, err
	})
	return port, err
}

// startTimeout is how long a server may take to answer. Recovery after a crash
// replays at most max_wal_size, which takes seconds.
const startTimeout = 2 * time.Minute

// answers tells whether the server at port works in the data folder. Anything
// else, another PostgreSQL included, is no.
func (c cluster) answers(ctx context.Context, port int, password string) (bool, error) {
	if port == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// Without require_auth a stranger on the port could ask for the password in
	// clear, and get it.
	conn, err := pgx.Connect(ctx, databaseURL(port, password, "postgres")+"&require_auth=scram-sha-256")
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "28P01" { // invalid_password
		return false, fmt.Errorf("the password in %s does not fit the data in %s",
			filepath.Join(filepath.Dir(c.dir), "password"), c.dir)
	}
	if err != nil {
		return false, nil
	}
	defer func() { _ = conn.Close(ctx) }()
	var dir string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir); err != nil {
		return false, nil
	}
	theirs, err := os.Stat(dir)
	if err != nil {
		return false, nil
	}
	ours, err := os.Stat(c.dir)
	return err == nil && os.SameFile(theirs, ours), nil
}

func (s *starter) createDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, databaseURL(s.port, s.password, "postgres"))
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var exists bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", s.Database).Scan(&exists)
	if err != nil {
		return fmt.Errorf("looking for database %s: %w", s.Database, err)
	}
	if exists {
		return nil
	}
	// Nobody else creates it meanwhile: we hold the start lock.
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{s.Database}.Sanitize()); err != nil {
		return fmt.Errorf("creating database %s: %w", s.Database, err)
	}
	return nil
}
