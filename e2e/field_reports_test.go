package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	reportRow  = regexp.MustCompile(`^//\t *([0-9]+)  \S`)
	reportTest = regexp.MustCompile(`^//\t +- (\S+) (Test.+)$`)
)

// TestFieldReports holds the table in doc.go: every kind of fault is covered by
// tests, and every test that it names is there.
func TestFieldReports(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	packages := map[string]testNames{}
	covered, number := map[int]int{}, 0
	for _, line := range strings.Split(string(doc), "\n") {
		if row := reportRow.FindStringSubmatch(line); row != nil {
			before := number
			number, err = strconv.Atoi(row[1])
			require.NoError(t, err)
			require.Greater(t, number, before)
			covered[number] = 0
		}
		named := reportTest.FindStringSubmatch(line)
		if named == nil {
			continue
		}
		folder, name := named[1], named[2]
		names, known := packages[folder]
		if !known {
			names = testsOf(t, filepath.Join("..", folder))
			packages[folder] = names
		}
		test, subtest, _ := strings.Cut(name, "/")
		require.True(t, names.functions[test], "%s: there is no %s in %s", row(number), test, folder)
		for _, part := range strings.Split(subtest, "/") {
			require.True(t, part == "" || names.texts[part], "%s: there is no subtest %s of %s in %s", row(number), part, test, folder)
		}
		covered[number]++
	}
	require.Len(t, covered, 32)
	for number, tests := range covered {
		require.Positive(t, tests, row(number))
	}
}

func row(number int) string { return "report " + strconv.Itoa(number) }

// testNames are the tests of a package, and every text in its test files: the
// names of subtests are among them.
type testNames struct {
	functions, texts map[string]bool
}

func testsOf(t *testing.T, folder string) testNames {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	names := testNames{map[string]bool{}, map[string]bool{}}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names.functions[n.Name.Name] = n.Recv == nil || names.functions[n.Name.Name]
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					names.texts[text] = true
				}
			}
			return true
		})
	}
	return names
}
