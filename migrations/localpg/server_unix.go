//go:build darwin || freebsd || linux

package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5"
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
