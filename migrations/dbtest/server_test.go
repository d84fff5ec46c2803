package dbtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"payonce/migrations"
	"payonce/migrations/localpg"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// lenderVariable turns the test program into one that has made a database and
// waits to be killed.
const lenderVariable = "PAYONCE_DBTEST_LENDER"

func TestMain(m *testing.M) {
	if os.Getenv(lenderVariable) != "" {
		os.Exit(lend())
	}
	os.Exit(m.Run())
}

func lend() int {
	ctx := context.Background()
	s, err := open(ctx, templatePrefix+migrations.Sum())
	if err == nil {
		_, err = s.clone(ctx, s.template)
	}
	fmt.Println("lent:", err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func databases(t *testing.T, s *server, pattern string) []string {
	t.Helper()
	rows, err := s.admin.Query(t.Context(), "SELECT datname FROM pg_database WHERE datname ~ $1 ORDER BY 1", pattern)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

func TestTheDatabaseGoesWithTheTestHoweverItsSessionsAre(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	var name string
	var open *pgx.Conn
	t.Run("test", func(t *testing.T) {
		url := NewURL(t)
		name = filepath.Base(url)
		name, _, _ = strings.Cut(name, "?")
		require.Len(t, databases(t, s, "^"+name+"$"), 1)
		var err error
		open, err = pgx.Connect(context.Background(), url)
		require.NoError(t, err)
	})
	require.Empty(t, databases(t, s, "^"+name+"$"))
	require.Error(t, open.Ping(t.Context()))
}

// recorder is a test that notes its failure.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }
func (r *recorder) Helper()                           {}

func TestAConnectionThatIsNotGivenBackFailsTheTest(t *testing.T) {
	t.Parallel()
	pool := New(t)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	r := &recorder{TB: t}
	closePool(r, pool, time.Millisecond)
	require.Contains(t, r.failure, "1 connections")
	conn.Release()
}

func TestProgramsThatStartAtOnceMakeOneTemplate(t *testing.T) {
	t.Parallel()
	shared := sharedServer(t)
	template := shared.owner + "_shared_template"
	t.Cleanup(func() { require.NoError(t, shared.drop(context.Background(), template)) })

	begin := make(chan struct{})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			<-begin
			s, err := open(t.Context(), template)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = s.close(context.Background()) }()
			name, err := s.clone(t.Context(), template)
			if err == nil {
				err = s.drop(t.Context(), name)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	group.Wait()
	require.Equal(t, []string{template}, databases(t, shared, "^"+template+"$"))
	require.Empty(t, databases(t, shared, "_template$ AND datname !~ '^"+shared.owner+"'"))
}

func TestATemplateThatOthersHaveDroppedIsMadeAgain(t *testing.T) {
	t.Parallel()
	shared := sharedServer(t)
	s, err := open(t.Context(), shared.owner+"_lost_template")
	require.NoError(t, err)
	defer func() { require.NoError(t, s.close(context.Background())) }()
	require.NoError(t, s.drop(t.Context(), s.template))

	name, err := s.clone(t.Context(), s.template)
	require.NoError(t, err)
	require.NoError(t, s.drop(t.Context(), name))
	require.NoError(t, s.drop(t.Context(), s.template))
}

func TestOnlyDatabasesOfDeadProgramsAreSwept(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	other, err := open(t.Context(), s.template)
	require.NoError(t, err)
	name, err := other.clone(t.Context(), s.template)
	require.NoError(t, err)

	require.NoError(t, s.sweep(t.Context()))
	require.Equal(t, []string{name}, databases(t, s, "^"+other.owner))

	require.NoError(t, other.close(t.Context()))
	// The server notices a moment later that a session has ended.
	require.Eventually(t, func() bool {
		return s.sweep(t.Context()) == nil && len(databases(t, s, "^"+other.owner)) == 0
	}, 10*time.Second, 10*time.Millisecond)
}

func TestAKilledProgramLeavesAWatchAndIsSweptByTheNext(t *testing.T) {
	if os.Getenv("TEST_DATABASE_URL") != "" || os.Getenv("DATABASE_URL") != "" {
		t.Log("the server is somebody else's: nothing is watched")
		return
	}
	parent, err := os.MkdirTemp("", "dbtest-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(parent, 0o711))
	dir := filepath.Join(parent, "payonce-test")
	t.Setenv("TEST_DATA_DIR", dir)
	t.Cleanup(func() {
		// The watch looks at its locks meanwhile; it ends when the folder is gone.
		require.Eventually(t, func() bool { return os.RemoveAll(parent) == nil }, 10*time.Second, 10*time.Millisecond)
	})

	program, err := os.Executable()
	require.NoError(t, err)
	lender := exec.Command(program)
	lender.Env = append(os.Environ(), lenderVariable+"=1")
	_, err = lender.StdinPipe()
	require.NoError(t, err)
	stdout, err := lender.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, lender.Start())
	said, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "lent: <nil>\n", said)
	require.NoError(t, lender.Process.Kill())
	require.Error(t, lender.Wait())

	folder, err := localpg.OpenFolder(dir)
	require.NoError(t, err)
	watched, err := folder.Watched()
	require.NoError(t, err)
	require.True(t, watched)

	next, err := open(t.Context(), templatePrefix+migrations.Sum())
	require.NoError(t, err)
	defer func() { require.NoError(t, next.close(context.Background())) }()
	// The server notices a moment later that a session has ended.
	require.Eventually(t, func() bool {
		return next.sweep(t.Context()) == nil && len(databases(t, next, "^"+prefix)) == 0
	}, 10*time.Second, 10*time.Millisecond)
}

func TestBaseURLIsTheTestsOwnThenTheShops(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://shop@db.test/shop")
	t.Setenv("TEST_DATABASE_URL", "postgres://tests@db.test/postgres?sslmode=disable")
	base, _, err := baseURL(t.Context())
	require.NoError(t, err)
	s := &server{base: base}
	require.Equal(t, "postgres://tests@db.test/payonce_test_1?sslmode=disable", s.url("payonce_test_1"))

	t.Setenv("TEST_DATABASE_URL", "")
	base, _, err = baseURL(t.Context())
	require.NoError(t, err)
	require.Equal(t, "shop", base.User.Username())

	t.Setenv("DATABASE_URL", "host=db.test password=secret")
	_, _, err = baseURL(t.Context())
	require.ErrorContains(t, err, "postgres://")
	require.NotContains(t, err.Error(), "secret")
}
