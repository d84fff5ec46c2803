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
	packages := map[string]suite{}
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
		tests, known := packages[folder]
		if !known {
			tests = suiteOf(t, filepath.Join("..", folder))
			packages[folder] = tests
		}
		parts := strings.Split(name, "/")
		function, found := tests[parts[0]].(*ast.FuncDecl)
		require.True(t, found, "%s: there is no %s in %s", row(number), parts[0], folder)
		require.True(t, tests.runs(function.Body, parts[1:]), "%s: %s in %s has no such subtest", row(number), name, folder)
		covered[number]++
	}
	require.Len(t, covered, 32)
	for number, tests := range covered {
		require.Positive(t, tests, row(number))
	}
}

func row(number int) string { return "report " + strconv.Itoa(number) }

// suite is what a package's test files declare, by name.
type suite map[string]ast.Node

func suiteOf(t *testing.T, folder string) suite {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	declared := suite{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					declared[d.Name.Name] = d
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if values, is := spec.(*ast.ValueSpec); is {
						for _, name := range values.Names {
							declared[name.Name] = values
						}
					}
				}
			}
		}
	}
	return declared
}

// runs is true if the code runs a subtest of this name, its parts in turn: the
// text that is given to Run, or the name of a row of a table, here or in what the
// code refers to. Any other text, such as a message, is no subtest.
func (s suite) runs(code ast.Node, parts []string) bool {
	if len(parts) == 0 {
		return true
	}
	found := false
	s.walk(code, map[string]bool{}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			method, is := n.Fun.(*ast.SelectorExpr)
			if is && method.Sel.Name == "Run" && len(n.Args) == 2 && isText(n.Args[0], parts[0]) {
				found = found || s.runs(n.Args[1], parts[1:])
			}
		case *ast.KeyValueExpr: // a map's key, or a field
			field, is := n.Key.(*ast.Ident)
			if isText(n.Key, parts[0]) || is && field.Name == "name" && isText(n.Value, parts[0]) {
				found = found || s.runs(code, parts[1:])
			}
		case *ast.CompositeLit: // a row's first field
			if len(n.Elts) > 0 && isText(n.Elts[0], parts[0]) {
				found = found || s.runs(code, parts[1:])
			}
		}
	})
	return found
}

// walk visits the code, and the package's declarations that it refers to.
func (s suite) walk(code ast.Node, seen map[string]bool, visit func(ast.Node)) {
	ast.Inspect(code, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is && s[id.Name] != nil && !seen[id.Name] {
			seen[id.Name] = true
			s.walk(s[id.Name], seen, visit)
		}
		if n != nil {
			visit(n)
		}
		return true
	})
}

func isText(e ast.Expr, text string) bool {
	literal, is := e.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return false
	}
	value, err := strconv.Unquote(literal.Value)
	return err == nil && value == text
}
