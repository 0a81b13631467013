package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
)

// firstCells returns the texts of the first column of the table under a heading.
func firstCells(t *testing.T, page, heading string) (all []string) {
	t.Helper()
	_, section, found := strings.Cut(shoptest.Read(t, page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(section, -1) {
		all = append(all, row[1])
	}
	return all[1:] // without the header; the expression does not match the separator below the header
}

// TestReasons: docs/design/explorer.md lists exactly the reasons of an incomplete search.
func TestReasons(t *testing.T) {
	t.Parallel()
	var want []string
	for _, r := range findings.Reasons() {
		want = append(want, r.Name)
	}
	want = slices.Compact(want)
	got := firstCells(t, "docs/design/explorer.md", "## When is a search complete?")
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("the page has the reasons\n%q\nand the code\n%q", got, want)
	}
}

// TestDiscardedRuns: docs/design/programs.md lists exactly the reasons of a discarded run.
func TestDiscardedRuns(t *testing.T) {
	t.Parallel()
	code := []string{schedule.ErrUnrepeated.Error()}
	readFolders(t, "internal/explore", func(file *ast.File, texts func(ast.Node) []string) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, is := n.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Void" {
					code = append(code, texts(n.Args[0])...)
				}
			case *ast.CompositeLit:
				if text := texts(n); isVoid(n) && len(text) > 0 && file.Name.Name != "naming" && !hasField(n, "Missed") {
					code = append(code, text[0])
				}
			}
			return true
		})
	})
	compareTexts(t, "docs/design/programs.md", strings.Split(strings.Join(firstCells(t, "docs/design/programs.md", "## Discarded runs"), "; "), "; "), code)
}

func isVoid(n *ast.CompositeLit) bool {
	s, is := n.Type.(*ast.SelectorExpr)
	return is && s.Sel.Name == "Void"
}

func hasField(n *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
		pair, is := e.(*ast.KeyValueExpr)
		return is && pair.Key.(*ast.Ident).Name == name
	})
}

// TestInconclusive: docs/reference/verdicts.md lists exactly the reasons of the verdict inconclusive.
func TestInconclusive(t *testing.T) {
	t.Parallel()
	var code []string
	for _, folder := range []string{"internal/judge", "internal/load"} {
		readFolders(t, folder, func(file *ast.File, texts func(ast.Node) []string) {
			ast.Inspect(file, func(n ast.Node) bool {
				var values []ast.Expr
				switch n := n.(type) {
				case *ast.ReturnStmt:
					values = n.Results
				case *ast.AssignStmt:
					values = n.Rhs
				}
				if len(values) != 2 {
					return true
				}
				if s, is := values[0].(*ast.SelectorExpr); is && s.Sel.Name == "Inconclusive" {
					if text := longest(texts(values[1])); strings.Trim(text, ": ") != "" { // an empty text only joins other reasons
						code = append(code, text)
					}
				}
				return true
			})
		})
	}
	compareTexts(t, "docs/reference/verdicts.md", firstCells(t, "docs/reference/verdicts.md", "## Everything that ends with 3"), code)
}

func longest(texts []string) (most string) {
	for _, text := range texts {
		if len(text) > len(most) {
			most = text
		}
	}
	return most
}

// readFolders calls the function do for each file below a folder, except tests. The function texts
// returns the string literals in an expression, including those of constants and functions of the same
// package that it names.
func readFolders(t *testing.T, folder string, do func(file *ast.File, texts func(ast.Node) []string)) {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"/*.go", "/*/*.go", "/*/*/*.go"} {
		found, err := filepath.Glob("../" + folder + pattern)
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	packages := map[string][]*ast.File{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
	}
	for _, files := range packages {
		named := map[string]ast.Node{}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					named[n.Name.Name] = n.Body
				case *ast.ValueSpec:
					if len(n.Values) == 1 {
						named[n.Names[0].Name] = n.Values[0]
					}
				}
				return true
			})
		}
		literals := func(n ast.Node, visit func(*ast.Ident)) (all []string) {
			ast.Inspect(n, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
						all = append(all, text)
					}
				case *ast.Ident:
					visit(n)
				}
				return true
			})
			return all
		}
		texts := func(n ast.Node) []string {
			var further []string
			all := literals(n, func(name *ast.Ident) {
				if to := named[name.Name]; to != nil {
					further = append(further, literals(to, func(*ast.Ident) {})...)
				}
			})
			return append(all, further...)
		}
		for _, file := range files {
			do(file, texts)
		}
	}
}

// compareTexts reports each text of the code without a row, and each row without a text. The values (%s)
// divide a text into parts. A row matches a text if it contains a part, or is contained in one.
func compareTexts(t *testing.T, page string, rows, code []string) {
	t.Helper()
	verb := regexp.MustCompile(`%[sdqv]`)
	fits := func(row, text string) bool {
		return slices.ContainsFunc(verb.Split(text, -1), func(part string) bool {
			part = strings.Trim(part, " :;,.")
			return len(part) > 8 && (strings.Contains(row, part) || strings.Contains(part, row))
		})
	}
	for _, text := range code {
		if text != "" && !slices.ContainsFunc(rows, func(row string) bool { return fits(row, text) }) {
			t.Errorf("%s has no row for %q", page, text)
		}
	}
	for _, row := range rows {
		if !slices.ContainsFunc(code, func(text string) bool { return fits(row, text) }) {
			t.Errorf("%s: no text in the code for the row %q", page, row)
		}
	}
}
