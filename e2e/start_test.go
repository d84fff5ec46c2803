package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	secret  = "SESSION_SECRET=" + sessionSecret
	testKey = "STRIPE_SECRET_KEY=sk_test_51aBcDeFgHiJkLmNoPqRs"
	liveKey = "STRIPE_SECRET_KEY=sk_live_51aBcDeFgHiJkLmNoPqRs"

	publishedTestKey = "STRIPE_PUBLISHABLE_KEY=pk_test_51aBcDeFgHiJkLmNoPqRs"
	publishedLiveKey = "STRIPE_PUBLISHABLE_KEY=pk_live_51aBcDeFgHiJkLmNoPqRs"
	someHookSecret   = "STRIPE_WEBHOOK_SECRET=whsec_0123456789abcdef0123456789abcdef"
)

// TestStart: a shop that cannot sell safely does not open. One line says which
// setting it is and what to do, and nothing stays behind.
func TestStart(t *testing.T) {
	t.Parallel()

	// What is refused before anything is started.
	for name, row := range map[string]struct {
		set  settings
		says []string
	}{
		"ALeaseUnderTheCallPhase":                  {settings{"LEASE=17s"}, []string{"LEASE is 17s", "set it above PROVIDER_TIMEOUT (15s) plus 2s"}},
		"ACallPhaseAboveTheLease":                  {settings{"PROVIDER_TIMEOUT=58s"}, []string{"LEASE is 1m0s", "set it above"}},
		"ACallPhaseUnderASecond":                   {settings{"PROVIDER_TIMEOUT=0s"}, []string{"PROVIDER_TIMEOUT is 0s", "set at least"}},
		"NoWait":                                   {settings{"WAIT=0s"}, []string{"WAIT is 0s", "set more"}},
		"AWaitThatNoClientWaits":                   {settings{"WAIT=31s"}, []string{"WAIT is 31s", "at most 30s"}},
		"AnOrderThatOutlivesStripesKeys":           {settings{"ORDER_EXPIRY=23h"}, []string{"ORDER_EXPIRY is 23h", "less than 23h"}},
		"AnOrderThatNobodyCanPay":                  {settings{"ORDER_EXPIRY=0s"}, []string{"ORDER_EXPIRY is 0s", "set 1m or more"}},
		"AResendThatOutlivesStripesKeys":           {settings{"RESEND_WINDOW=22h59m"}, []string{"RESEND_WINDOW is 22h59m", "must stay under 23h"}},
		"NoResend":                                 {settings{"RESEND_WINDOW=0s"}, []string{"RESEND_WINDOW is 0s", "must stay under"}},
		"ARetentionUnderStripes":                   {settings{"RETENTION=23h59m"}, []string{"RETENTION is 23h59m", "set at least 24h"}},
		"ARetentionUnderWhatCanRetry":              {settings{"RETENTION=24h", "ORDER_EXPIRY=22h", "RESEND_WINDOW=3h"}, []string{"RETENTION is 24h", "set it above ORDER_EXPIRY"}},
		"ACompleterThatNeverRests":                 {settings{"COMPLETER_INTERVAL=1ms"}, []string{"COMPLETER_INTERVAL is 1ms", "set 0 (never), or 100ms to 1h"}},
		"EventsForgottenBeforeStripeDoes":          {settings{"EVENT_RETENTION=720h"}, []string{"EVENT_RETENTION is 720h", "set at least"}},
		"ABankThatWaitsForNobody":                  {settings{"ACTION_TIMEOUT=59s"}, []string{"ACTION_TIMEOUT is 59s", "set 1m or more"}},
		"NoWebhookSecretWithStripe":                {settings{testKey, secret}, []string{"STRIPE_WEBHOOK_SECRET is empty and STRIPE_SECRET_KEY is set", "set the endpoint's secret"}},
		"AWebhookSecretThatIsNone":                 {settings{testKey, secret, "STRIPE_WEBHOOK_SECRET=hunter2"}, []string{"STRIPE_WEBHOOK_SECRET:", "whsec_"}},
		"NoRefundWindow":                           {settings{"REFUND_WINDOW=0s"}, []string{"REFUND_WINDOW is 0s", "set more"}},
		"OneConnection":                            {settings{"DB_MAX_CONNS=1"}, []string{"DB_MAX_CONNS is 1", "set 2 to 1000"}},
		"ADurationThatIsNone":                      {settings{"LEASE=a minute"}, []string{"LEASE: expected duration", `"a minute"`, "see shop --help"}},
		"ANumberThatIsNone":                        {settings{"DB_MAX_CONNS=few"}, []string{"DB_MAX_CONNS: expected", `"few"`, "see shop --help"}},
		"AChoiceThatIsNone":                        {settings{"DEMO=maybe"}, []string{"DEMO must be one of", `"maybe"`, "see shop --help"}},
		"AnAddressWithoutAPort":                    {settings{"ADDR=localhost"}, []string{`ADDR is "localhost"`, "set host:port"}},
		"AnAddressWithAPortThatIsNone":             {settings{"ADDR=127.0.0.1:99999"}, []string{`ADDR is "127.0.0.1:99999"`, "set host:port"}},
		"AMetricsAddressWithoutAPort":              {settings{"METRICS_ADDR=9090"}, []string{`METRICS_ADDR is "9090"`, "set host:port"}},
		"AStripeAddressWithoutAPort":               {settings{"STRIPE_SIM_ADDR=stripe"}, []string{`STRIPE_SIM_ADDR is "stripe"`, "set host:port"}},
		"APublicURLWithoutAScheme":                 {settings{"PUBLIC_URL=shop.example"}, []string{`PUBLIC_URL is "shop.example"`, "set a scheme and a host"}},
		"APublicURLWithAPath":                      {settings{"PUBLIC_URL=https://shop.example/shop"}, []string{"PUBLIC_URL is", "set a scheme and a host"}},
		"NoSessionSecretWithADatabase":             {settings{"DATABASE_URL=postgres://127.0.0.1/shop"}, []string{"SESSION_SECRET is empty and DATABASE_URL is set", "set 32 random bytes"}},
		"NoSessionSecretWithStripe":                {settings{testKey}, []string{"SESSION_SECRET is empty and STRIPE_SECRET_KEY is set", "set 32 random bytes"}},
		"AShortSessionSecret":                      {settings{"SESSION_SECRET=hunter2"}, []string{"SESSION_SECRET is 7 bytes long", "set 32 random bytes"}},
		"ADatabaseURLThatIsNone":                   {settings{"DATABASE_URL=my database", secret}, []string{"DATABASE_URL is not the address", "set postgres://"}},
		"ADatabaseURLThatCannotBeReadIsNotPrinted": {settings{"DATABASE_URL=postgres://shop:hunter2%@127.0.0.1/shop", secret}, []string{"DATABASE_URL is not the address", "set postgres://"}},
		"ALiveKeyInDemoMode":                       {settings{liveKey, secret, "DEMO=on"}, []string{"DEMO is on and STRIPE_SECRET_KEY is live", "set DEMO=off"}},
		"ALiveKeyWithoutAPublishableOne":           {settings{liveKey, secret}, []string{"STRIPE_PUBLISHABLE_KEY is empty and STRIPE_SECRET_KEY is live", "set the publishable key"}},
		"ALiveKeyWithoutAWebhookSecret":            {settings{liveKey, publishedLiveKey, secret}, []string{"STRIPE_WEBHOOK_SECRET is empty", "set the endpoint's secret"}},
		"ALiveKeyWithoutAnAddress":                 {settings{liveKey, publishedLiveKey, someHookSecret, secret}, []string{"STRIPE_SECRET_KEY is live and PUBLIC_URL is empty", "with https"}},
		"ALiveKeyWithoutHTTPS":                     {settings{liveKey, publishedLiveKey, someHookSecret, secret, "PUBLIC_URL=http://shop.example"}, []string{`PUBLIC_URL is "http://shop.example" and STRIPE_SECRET_KEY is live`, "set an address with https"}},
		"ALiveKeyForAnotherStripe":                 {settings{liveKey, publishedLiveKey, someHookSecret, secret, "STRIPE_API_BASE=http://127.0.0.1:1"}, []string{"STRIPE_SECRET_KEY", "a live Stripe key is sent to https://api.stripe.com only"}},
		"APublishableKeyAlone":                     {settings{publishedTestKey}, []string{"STRIPE_PUBLISHABLE_KEY is set without STRIPE_SECRET_KEY", "set both or neither"}},
		"APublishableKeyOfRealMoneyForATest":       {settings{testKey, publishedLiveKey, secret}, []string{"STRIPE_PUBLISHABLE_KEY", "of two modes", "set two test keys"}},
		"APublishableKeyOfATestForRealMoney":       {settings{liveKey, publishedTestKey, secret}, []string{"STRIPE_PUBLISHABLE_KEY", "of two modes", "set two test keys"}},
		"APublishableKeyThatIsNone":                {settings{testKey, "STRIPE_PUBLISHABLE_KEY=hunter2", secret}, []string{"STRIPE_PUBLISHABLE_KEY", "must be one word that begins with pk_test_ or pk_live_"}},
		"ASecretKeyAsThePublishableOne":            {settings{testKey, "STRIPE_PUBLISHABLE_KEY=sk_test_hunter2%", secret}, []string{"STRIPE_PUBLISHABLE_KEY", "this is a secret key", "set the publishable key"}},
		"AKeyThatIsNone":                           {settings{"STRIPE_SECRET_KEY=hunter2", secret}, []string{"STRIPE_SECRET_KEY", "must be one word that begins with sk_"}},
		"AnotherStripeWithoutAKey":                 {settings{"STRIPE_API_BASE=http://127.0.0.1:1"}, []string{"STRIPE_API_BASE is set without STRIPE_SECRET_KEY", "set both or neither"}},
		"AStripeAddressThatIsNone":                 {settings{testKey, secret, "STRIPE_API_BASE=ftp://stripe"}, []string{"STRIPE_SECRET_KEY", "API base must be an http or https address"}},
	} {
		t.Run("Refuses"+name, func(t *testing.T) {
			t.Parallel()
			line := requireRefused(t, newFolder(t), row.set)
			for _, words := range row.says {
				require.Contains(t, line, words)
			}
			require.NotContains(t, line, "hunter2%", "a password")
			require.NotContains(t, line, "51aBcDeFgHiJkLmNoPqRs", "a key")
		})
	}

	t.Run("RefusesAFlagThatIsNone", func(t *testing.T) {
		t.Parallel()
		require.Contains(t, requireRefused(t, newFolder(t), nil, "--leese=1m"), "unknown flag --leese")
	})

	t.Run("OnAPortThatIsTakenSaysSo", func(t *testing.T) {
		t.Parallel()
		for _, variable := range []string{"ADDR", "METRICS_ADDR"} {
			taken := httptest.NewServer(http.NotFoundHandler())
			defer taken.Close()
			dir := newFolder(t)
			line := requireRefused(t, dir, settings{variable + "=" + taken.Listener.Addr().String()})
			require.Contains(t, line, variable+":")
			require.Contains(t, line, "address already in use")
			require.Contains(t, line, "set "+variable+" to a free address")
			require.NoDirExists(t, dir, "nothing was started")
		}
	})

	t.Run("WithoutItsDatabaseSaysSo", func(t *testing.T) {
		t.Parallel()
		line := requireRefused(t, newFolder(t), settings{"DATABASE_URL=postgres://shop:hunter2@" + freeAddress(t) + "/shop", secret})
		require.Contains(t, line, "DATABASE_URL:")
		require.Contains(t, line, "connection refused")
		require.Contains(t, line, "start that database, or set another")
		require.NotContains(t, line, "hunter2")
	})

	t.Run("InAFolderThatCannotBeMadeSaysSo", func(t *testing.T) {
		t.Parallel()
		file := newFolder(t)
		require.NoError(t, os.WriteFile(file, nil, 0o644))
		line := requireRefused(t, filepath.Join(file, "data"), nil)
		require.Contains(t, line, "making the data folder")
		require.Contains(t, line, "set DATA_DIR to one that you can write")
	})

	t.Run("InAFolderThatPostgreSQLCannotReachSaysSo", func(t *testing.T) {
		t.Parallel()
		closed := newFolder(t)
		require.NoError(t, os.Mkdir(closed, 0o700))
		if os.Geteuid() == 0 { // else PostgreSQL runs as we do, and reaches it
			line := requireRefused(t, filepath.Join(closed, "data"), nil)
			require.Contains(t, line, "who cannot enter "+closed)
			require.Contains(t, line, "set DATA_DIR to a folder that everybody can reach")
		}
	})

	// A port is no identity: whoever else answers where the local Stripe should
	// be is not taken for it.
	foreign := func(t *testing.T, address string) {
		t.Helper()
		line := requireRefused(t, newFolder(t), settings{"STRIPE_SIM_ADDR=" + address})
		require.Contains(t, line, "the local Stripe: "+address+" is taken")
		require.Contains(t, line, "set STRIPE_SIM_ADDR to a free address")
	}
	t.Run("WithAnotherServerInStripesPlaceSaysSo", func(t *testing.T) {
		t.Parallel()
		other := httptest.NewServer(http.NotFoundHandler())
		defer other.Close()
		foreign(t, other.Listener.Addr().String())
	})
	t.Run("WithAnImpostorInStripesPlaceSaysSo", func(t *testing.T) {
		t.Parallel()
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"id":"0123456789abcdef0123456789abcdef","product":"something else"}`))
		}))
		defer other.Close()
		foreign(t, other.Listener.Addr().String())
	})
	t.Run("WithSomethingSilentInStripesPlaceSaysSo", func(t *testing.T) {
		t.Parallel()
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = silent.Close() }()
		foreign(t, silent.Addr().String())
	})
	t.Run("WithTheStripeOfAnotherFolderInItsPlaceSaysSo", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		shop := d.open(t)
		foreign(t, d.stripe.addr)
		d.customer(t, shop).buy("idempotency-end-to-end") // which was left alone
	})
	t.Run("WithASecondStripeForOneFolderSaysSo", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		shop := d.open(t)
		line := requireRefused(t, d.dataDir, append(append(settings{}, d.settings...), "STRIPE_SIM_ADDR="+freeAddress(t)))
		require.Contains(t, line, "STRIPE_SIM_ADDR")
		d.customer(t, shop).buy("idempotency-end-to-end")
	})

	t.Run("OnAnEmptyDatabaseMakesItsSchemaEvenThreeAtOnce", func(t *testing.T) {
		t.Parallel()
		d := deploy(t)
		d.execute(t, "DROP SCHEMA public CASCADE")
		d.execute(t, "CREATE SCHEMA public")
		var shops []*shop
		for range 3 {
			shops = append(shops, d.begin(t, freeAddress(t)))
		}
		for _, s := range shops {
			s.waitReady(t)
			d.customer(t, s).buy("idempotency-end-to-end")
		}
	})

	t.Run("HelpNamesEveryVariable", func(t *testing.T) {
		t.Parallel()
		p := start(t, nil, "--help")
		require.Zero(t, p.wait(t))
		for _, name := range []string{
			"ADDR", "PUBLIC_URL", "METRICS_ADDR", "DATA_DIR", "DATABASE_URL", "DB_MAX_CONNS", "STRIPE_SECRET_KEY", "STRIPE_PUBLISHABLE_KEY", "STRIPE_API_BASE",
			"STRIPE_SIM_ADDR", "SESSION_SECRET", "DEMO", "LEASE", "PROVIDER_TIMEOUT", "WAIT", "RETENTION", "ORDER_EXPIRY",
			"RESEND_WINDOW", "REFUND_WINDOW", "STRIPE_WEBHOOK_SECRET", "COMPLETER_INTERVAL", "EVENT_RETENTION", "ACTION_TIMEOUT",
		} {
			require.Contains(t, p.out.String(), "$"+name)
		}
		require.Empty(t, p.err.String())
	})
}

// requireRefused starts a shop that must not open: it ends with status 1, its
// only words are one line, which is returned, and nothing stays behind.
func requireRefused(t *testing.T, dataDir string, set settings, args ...string) string {
	t.Helper()
	d := &deployment{dataDir: dataDir}
	before := processesOf(d)
	env := append(settings{"ADDR=" + freeAddress(t), "STRIPE_SIM_ADDR=" + freeAddress(t), "DATA_DIR=" + dataDir}, set...)
	p := start(t, env, args...)
	require.Equal(t, 1, p.wait(t), "the exit status; %s%s", &p.out, &p.err)
	require.Empty(t, p.out.String())
	line, ended := strings.CutSuffix(p.err.String(), "\n")
	require.True(t, ended)
	require.NotContains(t, line, "\n", "more than one line")
	require.True(t, strings.HasPrefix(line, "shop: "), line)
	require.ElementsMatch(t, before, processesOf(d), "processes that were left behind")
	return line
}
