package dbtest

import (
	"context"
	"errors"
	"fmt"

	"payonce/migrations"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// prefix begins the name of every database that belongs to a test.
	prefix = "payonce_test_"
	// templatePrefix begins the name of every template.
	templatePrefix = "payonce_template_"
	// keepTemplates is how many templates stay: a few, for branches that are
	// worked on in turn.
	keepTemplates = 4
	// templateLock is the advisory lock under which a template is made. The
	// number is arbitrary.
	templateLock = 7_266_201
)

// ensureTemplate makes the template that s names, migrated, if no other process
// has. It is made under another name and renamed when it is whole, so
// that a process that dies halfway leaves nothing that would be cloned.
func (s *server) ensureTemplate(ctx context.Context) error {
	conn, err := s.admin.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the test server: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return fmt.Errorf("locking the template: %w", err)
	}
	defer func() { _, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", templateLock) }()

	var exists bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", s.template).Scan(&exists)
	if err != nil {
		return fmt.Errorf("looking for the template: %w", err)
	}
	if exists {
		return nil
	}
	unfinished := s.owner + "_template"
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+quote(unfinished)+" TEMPLATE template0"); err != nil {
		return fmt.Errorf("making the template: %w", err)
	}
	if err := migrations.Up(ctx, s.url(unfinished)); err != nil {
		return errors.Join(err, s.drop(ctx, unfinished))
	}
	// A template with a session in it cannot be cloned (55006): nobody may connect.
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quote(unfinished)+" ALLOW_CONNECTIONS false"); err != nil {
		return fmt.Errorf("closing the template: %w", err)
	}
	if _, err := conn.Exec(ctx, "ALTER DATABASE "+quote(unfinished)+" RENAME TO "+quote(s.template)); err != nil {
		return fmt.Errorf("naming the template: %w", err)
	}
	return s.dropOldTemplates(ctx)
}

// clone makes a database from a template. Copying files is what is fastest for
// a small database, as long as nobody waits for the disk.
func (s *server) clone(ctx context.Context, template string) (name string, err error) {
	name = fmt.Sprintf("%s_%d", s.owner, s.clones.Add(1))
	create := "CREATE DATABASE " + quote(name) + " TEMPLATE " + quote(template) + " STRATEGY FILE_COPY"
	_, err = s.admin.Exec(ctx, create)
	if sqlState(err) == invalidCatalogName {
		// Programs with other migrations have made their templates since, and
		// ours was one too many.
		if err := s.ensureTemplate(ctx); err != nil {
			return "", err
		}
		_, err = s.admin.Exec(ctx, create)
	}
	if err != nil {
		return "", fmt.Errorf("cloning the template: %w", err)
	}
	return name, nil
}

func (s *server) drop(ctx context.Context, name string) error {
	if _, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("dropping a database: %w", err)
	}
	return nil
}

// sweep drops the databases of processes that ended without doing so.
func (s *server) sweep(ctx context.Context) error {
	const abandonedSQL = `
		SELECT d.datname FROM pg_database d
		WHERE d.datname ~ ('^' || $1 || '[0-9a-f]{8}_')
		  AND NOT EXISTS (
			SELECT FROM pg_stat_activity a
			WHERE a.application_name = substring(d.datname FROM '^' || $1 || '[0-9a-f]{8}'))`
	return s.dropAll(ctx, abandonedSQL, prefix)
}

func (s *server) dropOldTemplates(ctx context.Context) error {
	const oldSQL = `
		SELECT datname FROM pg_database WHERE datname ~ ('^' || $1)
		ORDER BY oid DESC OFFSET $2`
	return s.dropAll(ctx, oldSQL, templatePrefix, keepTemplates)
}

func (s *server) dropAll(ctx context.Context, query string, args ...any) error {
	rows, err := s.admin.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("looking for old databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("looking for old databases: %w", err)
	}
	for _, name := range names {
		err := s.drop(ctx, name)
		if err != nil && sqlState(err) != objectInUse { // being cloned
			return err
		}
	}
	return nil
}

// SQLSTATEs: https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	invalidCatalogName = "3D000"
	objectInUse        = "55006"
)

func sqlState(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
