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
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"payonce/migrations/localpg"
)

// deployment is a database, a local Stripe, and the shops on them. All shops of
// a deployment have one data folder, and with it one local Stripe.
type deployment struct {
	t        *testing.T
	settings settings
	dataDir  string
	pool     *pgxpool.Pool // nil: the shops start a PostgreSQL of their own
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
	pool, err := pgxpool.New(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return newDeployment(t, pool, append(s, "DATABASE_URL="+database, "SESSION_SECRET="+sessionSecret))
}

// clientsOnly keeps the shops from finishing what a client has left: what
// becomes of a payment is then up to whoever sends it again.
const clientsOnly = "COMPLETER_INTERVAL=0s"

// deployAlone makes a deployment without any configuration but addresses and a
// data folder, as make run does: its shops start their own PostgreSQL.
func deployAlone(t *testing.T, s ...string) *deployment {
	t.Helper()
	return newDeployment(t, nil, s)
}

func newDeployment(t *testing.T, pool *pgxpool.Pool, s settings) *deployment {
	t.Helper()
	d := &deployment{t: t, dataDir: newFolder(t), pool: pool, stripe: &stripe{addr: freeAddress(t)}, seen: map[sighting]bool{}}
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
		requireNoLeaks(t, d)
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

// sql asks the deployment's database one question.
func sql[T any](t testing.TB, d *deployment, query string, args ...any) (value T) {
	t.Helper()
	d.withDatabase(t, func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, _ := pool.Query(ctx, query, args...)
		var err error
		value, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
		return err
	})
	return value
}

// execute changes something in the deployment's database, and returns how many
// rows.
func (d *deployment) execute(t testing.TB, query string, args ...any) (changed int64) {
	t.Helper()
	d.withDatabase(t, func(ctx context.Context, pool *pgxpool.Pool) error {
		tag, err := pool.Exec(ctx, query, args...)
		changed = tag.RowsAffected()
		return err
	})
	return changed
}

// withDatabase gives f the deployment's database. One that the shops started
// themselves is theirs to stop, so nobody else holds on to it.
func (d *deployment) withDatabase(t testing.TB, f func(context.Context, *pgxpool.Pool) error) {
	t.Helper()
	ctx := context.Background() // also after the test's own has ended
	if d.pool != nil {
		require.NoError(t, f(ctx, d.pool))
		return
	}
	server, err := localpg.Start(ctx, localpg.Options{DataDir: d.dataDir})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop(ctx)) }()
	pool, err := pgxpool.New(ctx, server.URL(""))
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, f(ctx, pool))
}
