// Package migrations holds the shop's schema as numbered SQL and brings a
// database up to it. Migrations go forward only and are never edited once
// released; number 1 is the ledger's own [idempotency.Schema], so that the
// package idempotency can be lifted out without this one.
package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"payonce/idempotency"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

var (
	// ErrNewer: a newer program has migrated the database. By Up and Check.
	ErrNewer = errors.New("database is newer than this program")
	// ErrTooOld: the server is older than PostgreSQL 15. By Up.
	ErrTooOld = errors.New("PostgreSQL 15 or later is needed")
	// ErrPending: the database lacks migrations that this program needs. By Check.
	ErrPending = errors.New("database is not migrated")
)

// Up applies every pending migration to the database at databaseURL, each in
// a transaction of its own. Any number of programs may call it at once: one
// migrates under a PostgreSQL session lock, the others wait for it, at most
// five minutes. It returns ErrNewer, and changes nothing, when the database
// knows a migration that this program does not; and ErrTooOld.
func Up(ctx context.Context, databaseURL string) error {
	// A pool's, because the URL may hold settings of the shop's pool.
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("reading the database URL: %w", err)
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	defer func() { _ = db.Close() }()

	if err := checkServer(ctx, db); err != nil {
		return err
	}
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("reading the schema's version: %w", err)
	}
	if current > target {
		return newer(current, target)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	return nil
}

func checkServer(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	return supported(version)
}

// supported judges a server_version_num, which is 150018 for 15.18.
func supported(version int) error {
	if version < 150000 {
		return fmt.Errorf("%w: this is %d", ErrTooOld, version/10000)
	}
	return nil
}

// querier is what Check needs of a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check tells whether the database has exactly this program's schema: nil, or
// ErrPending, or ErrNewer, or the error of the query. It is one small read
// and changes nothing, so a readiness probe may call it.
func Check(ctx context.Context, db querier) error {
	target := Version()
	var current int64
	err := db.QueryRow(ctx, `SELECT version_id FROM goose_db_version ORDER BY version_id DESC LIMIT 1`).Scan(&current)
	var pgErr *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.As(err, &pgErr) && pgErr.Code == undefinedTable:
		return fmt.Errorf("%w: it has no schema yet, run shop migrate", ErrPending)
	case err != nil:
		return fmt.Errorf("reading the schema's version: %w", err)
	case current < target:
		return fmt.Errorf("%w: it is at version %d of %d, run shop migrate", ErrPending, current, target)
	case current > target:
		return newer(current, target)
	}
	return nil
}

// undefinedTable is a SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
const undefinedTable = "42P01"

// Version returns the number of the last migration that this program knows.
func Version() int64 {
	last := int64(ledgerVersion)
	for _, name := range names() {
		number, err := goose.NumericComponent(name)
		if err != nil {
			panic(fmt.Sprintf("migrations: bug: %v", err))
		}
		last = max(last, number)
	}
	return last
}

// Sum returns a short hash of all migrations: two programs with the same sum
// make the same schema. Its 12 hexadecimal digits fit into a database's name.
func Sum() string {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%d %s", len(idempotency.Schema), idempotency.Schema)
	for _, name := range names() {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("migrations: bug: %v", err))
		}
		_, _ = fmt.Fprintf(hash, "%s %d %s", name, len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12]
}

// names returns the SQL files, sorted.
func names() []string {
	matches, err := fs.Glob(files, "*.sql")
	if err != nil {
		panic(fmt.Sprintf("migrations: bug: %v", err))
	}
	return matches
}

// ledgerVersion is the migration that creates the ledger. The SQL files start
// at the next number.
const ledgerVersion = 1

func newProvider(db *sql.DB) (*goose.Provider, error) {
	// The lock is asked for once a second; goose's own five seconds would make
	// the second of two shops start noticeably late.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, fmt.Errorf("preparing the migrations' lock: %w", err)
	}
	ledger := goose.NewGoMigration(ledgerVersion, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, idempotency.Schema)
		return err
	}}, nil)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithGoMigrations(ledger),
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return nil, fmt.Errorf("collecting the migrations: %w", err)
	}
	return provider, nil
}

func newer(current, target int64) error {
	return fmt.Errorf("%w: it is at version %d, this program ends at %d; start the newer one", ErrNewer, current, target)
}
