package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"payonce/migrations/localpg"
)

// deployment is a database, a local Stripe, and the shops on them. All shops of
// a deployment have one data folder, and with it one local Stripe.
type deployment struct {
	t        *testing.T
	settings settings
	dataDir  string
	database string // empty: the shops start a PostgreSQL of their own
	stripe   *stripe
	shops    []*shop

	mu   sync.Mutex
	seen map[sighting]bool // what customers were answered under their keys
}

// sessionSecret signs the cookies of a deployment's shops.
const sessionSecret = "end-to-end-end-to-end-end-to-end"

// deploy makes a deployment on the shared PostgreSQL. Its shops are opened by open.
func deploy(t *testing.T, s ...string) *deployment {
	t.Helper()
	database := newDatabase(t)
	return newDeployment(t, database, append(s, "DATABASE_URL="+database, "SESSION_SECRET="+sessionSecret))
}

// deployAlone makes a deployment without any configuration but addresses and a
// data folder, as make run does: its shops start their own PostgreSQL.
func deployAlone(t *testing.T, s ...string) *deployment {
	t.Helper()
	return newDeployment(t, "", s)
}

func newDeployment(t *testing.T, database string, s settings) *deployment {
	t.Helper()
	d := &deployment{t: t, dataDir: newFolder(t), database: database, stripe: &stripe{addr: freeAddress(t)}, seen: map[sighting]bool{}}
	d.settings = append(s, "DATA_DIR="+d.dataDir, "STRIPE_SIM_ADDR="+d.stripe.addr)
	t.Cleanup(d.close)
	return d
}

// close checks the invariants, closes the shops, and requires that nothing is
// left of them.
func (d *deployment) close() {
	t := d.t
	if len(d.shops) == 0 {
		return
	}
	defer d.endRemains()
	if !t.Failed() {
		// The test may have left all of them closed or killed.
		if !d.isOpen() {
			d.open(t)
		}
		requireInvariants(t, d)
	}
	for _, s := range d.shops {
		if s.running() {
			s.close(t)
		}
	}
	requireNothingLeft(t, d)
}

// endRemains shows what the processes printed, if the test failed, and ends
// those that should be gone, so that a failure does not cling to the machine.
func (d *deployment) endRemains() {
	if !d.t.Failed() {
		return
	}
	for _, s := range d.shops {
		s.report(d.t)
	}
	log, _ := os.ReadFile(filepath.Join(d.dataDir, "stripe.log"))
	d.t.Logf("the local Stripe:\n%s", lastLines(string(log)))
	for _, pid := range processesOf(d) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (d *deployment) isOpen() bool {
	return slices.ContainsFunc(d.shops, func(s *shop) bool { return s.running() })
}

// shop is one running shop of a deployment.
type shop struct {
	*process
	url  string
	addr string
}

// open starts a shop on a free address and returns when it can sell.
func (d *deployment) open(t testing.TB, s ...string) *shop {
	t.Helper()
	return d.openAt(t, freeAddress(t), s...)
}

// reopen starts a shop on the address of one that has ended.
func (d *deployment) reopen(t testing.TB, old *shop, s ...string) *shop {
	t.Helper()
	require.False(t, old.running())
	return d.openAt(t, old.addr, s...)
}

func (d *deployment) openAt(t testing.TB, addr string, s ...string) *shop {
	t.Helper()
	opened := d.begin(t, addr, s...)
	opened.waitReady(t)
	return opened
}

// begin starts a shop and does not wait for it. It is closed with the
// deployment, not with t.
func (d *deployment) begin(t testing.TB, addr string, s ...string) *shop {
	t.Helper()
	env := append(append(settings{}, d.settings...), s...)
	begun := &shop{process: start(t, append(env, "ADDR="+addr)), addr: addr, url: "http://" + addr}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shops = append(d.shops, begun)
	return begun
}

func (s *shop) waitReady(t testing.TB) {
	t.Helper()
	eventually(t, "the shop can sell", func() bool {
		require.True(t, s.running(), "the shop ended: %s", &s.err)
		answer, err := plainClient.Get(s.url + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode == http.StatusOK
	})
}

// close asks the shop to close, and requires that it does so in order.
func (s *shop) close(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	require.Zero(t, s.wait(t), "the exit status; %s", &s.err)
}

// sql asks the deployment's database one question, on a connection of its own.
func sql[T any](t testing.TB, d *deployment, query string, args ...any) T {
	t.Helper()
	conn := d.connect(t)
	rows, _ := conn.Query(context.Background(), query, args...)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err, query)
	require.NoError(t, conn.Close(context.Background()))
	return value
}

// execute changes something in the deployment's database, and returns how many rows.
func (d *deployment) execute(t testing.TB, query string, args ...any) int64 {
	t.Helper()
	conn := d.connect(t)
	tag, err := conn.Exec(context.Background(), query, args...)
	require.NoError(t, err, query)
	require.NoError(t, conn.Close(context.Background()))
	return tag.RowsAffected()
}

func (d *deployment) connect(t testing.TB) *pgx.Conn {
	t.Helper()
	ctx := context.Background()
	address := d.database
	if address == "" {
		// It runs; this only finds out where. Giving it up at once leaves it to
		// its shops.
		server, err := localpg.Start(ctx, localpg.Options{DataDir: d.dataDir})
		require.NoError(t, err)
		address = server.URL("")
		defer func() { require.NoError(t, server.Stop(ctx)) }()
	}
	conn, err := pgx.Connect(ctx, address)
	require.NoError(t, err)
	return conn
}
