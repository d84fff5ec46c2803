package e2e

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"payonce/migrations/localpg"
)

// postgres is the PostgreSQL that the deployments of a run share, each with a
// database of its own: starting one takes longer than most tests.
type postgres struct {
	base *url.URL
	pool *pgxpool.Pool
	// name begins the names of this run's databases, and is the name of its
	// sessions: a database without such a session was left by a run that died.
	name      string
	databases atomic.Int64
}

const databasePrefix = "payonce_e2e_"

// shared starts the server, or takes the one of TEST_DATABASE_URL or
// DATABASE_URL, and lets the shop itself make the schema that is cloned.
var shared = sync.OnceValues(func() (*postgres, error) {
	ctx := context.Background()
	address := cmp.Or(os.Getenv("TEST_DATABASE_URL"), os.Getenv("DATABASE_URL"))
	if address == "" {
		dir, err := sharedFolder()
		if err != nil {
			return nil, err
		}
		server, err := localpg.Start(ctx, localpg.Options{DataDir: dir, Volatile: true})
		if err != nil {
			return nil, err
		}
		afterAllTests(func() error { return server.Stop(ctx) })
		address = server.URL("postgres")
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails, see its documentation
	p := &postgres{name: databasePrefix + hex.EncodeToString(random)}
	var err error
	if p.base, err = url.Parse(address); err != nil {
		return nil, errors.New("TEST_DATABASE_URL or DATABASE_URL is not a URL")
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["application_name"] = p.name
	config.MinConns = 1
	config.MaxConnIdleTime = time.Hour
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	afterAllTests(func() error { p.pool.Close(); return nil })
	if err := p.sweep(ctx); err != nil {
		return nil, err
	}
	return p, p.makeTemplate(ctx)
})

// sharedFolder is one for each choice of binaries, since a folder runs one server.
func sharedFolder() (string, error) {
	dir, err := localpg.DefaultDir()
	if err != nil {
		return "", err
	}
	dir += "-e2e"
	if binaries := os.Getenv("LOCALPG"); binaries != "" {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(binaries))
		dir += fmt.Sprintf("-%08x", hash.Sum32())
	}
	return dir, nil
}

func (p *postgres) url(database string) string {
	u := *p.base
	u.Path = "/" + database
	return u.String()
}

func (p *postgres) makeTemplate(ctx context.Context) error {
	shop, err := program()
	if err != nil {
		return err
	}
	template := p.name + "_template"
	if _, err := p.pool.Exec(ctx, "CREATE DATABASE "+template+" TEMPLATE template0"); err != nil {
		return err
	}
	afterAllTests(func() error { return p.drop(ctx, template) })
	migrate := exec.Command(shop, "migrate")
	migrate.Env = settings{"DATABASE_URL=" + p.url(template)}.environment()
	if out, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("shop migrate: %w\n%s", err, out)
	}
	return nil
}

// sweep drops the databases of runs that ended without doing so.
func (p *postgres) sweep(ctx context.Context) error {
	rows, _ := p.pool.Query(ctx, `
		SELECT d.datname FROM pg_database d
		 WHERE d.datname ~ ('^' || $1 || '[0-9a-f]{8}_')
		   AND NOT EXISTS (SELECT FROM pg_stat_activity a
		                    WHERE a.application_name = substring(d.datname FROM '^' || $1 || '[0-9a-f]{8}'))`, databasePrefix)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := p.drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *postgres) drop(ctx context.Context, name string) error {
	_, err := p.pool.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	return err
}

// newDatabase returns the URL of a migrated database, which is dropped when the
// test has ended.
func newDatabase(t testing.TB) string {
	t.Helper()
	p, err := shared()
	require.NoError(t, err)
	name := fmt.Sprintf("%s_%d", p.name, p.databases.Add(1))
	_, err = p.pool.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE "+p.name+"_template STRATEGY FILE_COPY")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.drop(context.Background(), name)) })
	return p.url(name)
}
