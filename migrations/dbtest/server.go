package dbtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"

	"payonce/migrations"
	"payonce/migrations/localpg"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// server is the PostgreSQL that this process's tests use.
type server struct {
	base  *url.URL
	local *localpg.Server // nil when the server is somebody else's
	admin *pgxpool.Pool
	// owner is what the names of this process's databases begin with, and the
	// application_name of a session that lives as long as the process: a
	// database without such a session was left behind by a process that died.
	owner    string
	session  *pgx.Conn
	template string
	clones   atomic.Int64
}

var (
	once    sync.Once
	opened  *server
	errOpen error
)

// shared returns the one server of this process. It is never closed: the end
// of the process closes it, however it ends.
func shared(ctx context.Context) (*server, error) {
	once.Do(func() {
		// Not the context of the test that happens to come first.
		opened, errOpen = open(context.WithoutCancel(ctx), templatePrefix+migrations.Sum())
	})
	return opened, errOpen
}

// open connects to the server, removes what dead processes have left there,
// and sees to it that the template exists.
func open(ctx context.Context, template string) (*server, error) {
	base, local, err := baseURL(ctx)
	if err != nil {
		return nil, err
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails, see its documentation
	s := &server{base: base, local: local, owner: prefix + hex.EncodeToString(random), template: template}

	config, err := pgxpool.ParseConfig(base.String())
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = s.owner
	if s.session, err = pgx.ConnectConfig(ctx, config.ConnConfig); err != nil {
		return nil, fmt.Errorf("connecting to the test server: %w", err)
	}
	if s.admin, err = pgxpool.New(ctx, base.String()); err != nil {
		return nil, fmt.Errorf("opening a pool: %w", err)
	}
	if err := s.sweep(ctx); err != nil {
		return nil, err
	}
	if err := s.ensureTemplate(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// baseURL returns the URL of the server, on a database that tests leave alone,
// and the local server if it is one.
func baseURL(ctx context.Context) (*url.URL, *localpg.Server, error) {
	given := cmp.Or(os.Getenv("TEST_DATABASE_URL"), os.Getenv("DATABASE_URL"))
	if given == "" {
		local, err := startLocal(ctx)
		if err != nil {
			return nil, nil, err
		}
		base, err := url.Parse(local.URL("postgres"))
		return base, local, err
	}
	base, err := url.Parse(given)
	if err != nil || base.Scheme == "" {
		// Not err: it quotes the URL, and with it the password.
		return nil, nil, errors.New("TEST_DATABASE_URL or DATABASE_URL is not of the form postgres://user:password@host/database")
	}
	return base, nil, nil
}

func startLocal(ctx context.Context) (*localpg.Server, error) {
	dir, err := localDir()
	if err != nil {
		return nil, err
	}
	// Before the start, so that a server never runs unwatched; and after it,
	// because a watch that was there may have been on its way out.
	if err := watch(dir); err != nil {
		return nil, err
	}
	local, err := localpg.Start(ctx, localpg.Options{DataDir: dir, Volatile: true})
	if err != nil {
		return nil, err
	}
	return local, watch(dir)
}

// close gives the server up, for which the end of the process does as well.
func (s *server) close(ctx context.Context) error {
	s.admin.Close()
	err := s.session.Close(ctx)
	if s.local != nil {
		err = errors.Join(err, s.local.Stop(ctx))
	}
	return err
}

// url returns the URL of a database on the server.
func (s *server) url(database string) string {
	u := *s.base
	u.Path = "/" + database
	return u.String()
}
