package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allowed is what each package may import directly, beside the standard
// library. A prefix that ends in / allows a module's packages.
var allowed = map[string][]string{
	"payonce/idempotency":         {"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/", "github.com/gowebpki/jcs", "github.com/dunglas/httpsfv"},
	"payonce/idempotency/retry":   {},
	"payonce/idempotency/racelab": {"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/", "payonce/idempotency"},
	"payonce/checkout":            {"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/", "payonce/idempotency"},
	"payonce/checkout/stripepay":  {"github.com/stripe/stripe-go/v79", "github.com/stripe/stripe-go/v79/", "payonce/checkout"},
	"payonce/checkout/stripesim":  {},
	"payonce/web": {
		"github.com/labstack/echo/v4", "github.com/labstack/echo/v4/", "github.com/gorilla/securecookie", "github.com/prometheus/client_golang/",
		"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
		"payonce/checkout", "payonce/idempotency", "payonce/idempotency/racelab", "payonce/web/view", "payonce/static",
	},
	"payonce/web/view":           {"github.com/a-h/templ", "github.com/a-h/templ/", "payonce/static"},
	"payonce/migrations":         {"github.com/pressly/goose/v3", "github.com/pressly/goose/v3/", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/", "payonce/idempotency"},
	"payonce/migrations/localpg": {"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/"},
	"payonce/migrations/dbtest":  {"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/", "payonce/migrations", "payonce/migrations/localpg"},
	"payonce/static":             {},
	"payonce/e2e":                {},
	"payonce/cmd/shop":           {"*"},
}

// inTests is what the tests of a package may import more. The end-to-end tests
// are black boxes: they see HTTP, SQL and Stripe's API, never the shop's code.
// idempotency/retry is none of it: it is the other half, which a program outside
// has in its hands, and knows nothing of the shop but what it answers.
var inTests = map[string][]string{
	"payonce/e2e": {
		"github.com/playwright-community/playwright-go", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/",
		"github.com/stretchr/testify/require", "pgregory.net/rapid",
		"payonce/migrations/localpg", "payonce/checkout/stripesim", "payonce/idempotency/retry",
	},
}

// TestImports holds the table of who may import whom: the ledger can be lifted
// out, the local Stripe shares no code with what it judges, and only one
// package knows stripe-go.
func TestImports(t *testing.T) {
	t.Parallel()
	command := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "payonce/...")
	out, err := command.Output()
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for decoder.More() {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		require.NoError(t, decoder.Decode(&p))
		rules, known := allowed[p.ImportPath]
		require.True(t, known, "%s is not in the table: a package that nobody planned", p.ImportPath)
		for _, name := range p.Imports {
			require.True(t, permitted(name, rules), "%s must not import %s", p.ImportPath, name)
		}
		rules, restricted := inTests[p.ImportPath]
		for _, name := range slices.Concat(p.TestImports, p.XTestImports) {
			require.True(t, !restricted || permitted(name, rules), "the tests of %s must not import %s", p.ImportPath, name)
		}
	}
}

func permitted(name string, rules []string) bool {
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") && first != "payonce" {
		return true // the standard library
	}
	for _, rule := range rules {
		if rule == "*" || name == rule || (strings.HasSuffix(rule, "/") && strings.HasPrefix(name, rule)) {
			return true
		}
	}
	return false
}
