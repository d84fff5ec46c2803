//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

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
	bin, err := findBinaries(ctx, s.folder, s.who, s.Binaries, s.Log)
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
			port = 0
			return true, err
		}
		p, err := c.postmaster()
		if err != nil || !p.ready {
			return false, err
		}
		port = p.port
		return c.answers(ctx, port, password)
	})
	return port, err
}

// startTimeout is how long a server may take to answer. Recovery after a crash
// replays at most max_wal_size, which takes seconds.
const startTimeout = 2 * time.Minute

// answers tells whether the server at port works in the data folder. Anything
// else, another PostgreSQL included, is no. A server that refuses the password
// is an error, so the caller asks only where the folder's own server listens.
func (c cluster) answers(ctx context.Context, port int, password string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// Without require_auth a stranger on the port could ask for the password in
	// clear, and get it.
	conn, err := pgx.Connect(ctx, databaseURL(port, password, "postgres")+"&require_auth=scram-sha-256")
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "28P01" { // invalid_password
		return false, fmt.Errorf("the password in %s does not fit the data in %s: bring it back, or remove the data",
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
