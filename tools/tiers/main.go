// Command tiers prints a page that lists which tests each of `make quick`, `make test` and `make soak` runs:
//
//	go run -C tools ./tiers > docs/reference/tests.md
//	go run -C tools ./tiers slow                        the packages of which make quick runs no test
//
// It finds the calls of package internal/tier, and the calls that start servers, in the source of the tests.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A test is a test function. If `make quick` runs all of it, `soak` and `part` are "".
type test struct {
	name       string
	soak, part string // reason why only `make soak` runs the test, or a part of it
	servers    bool   // `make quick` skips the test, or a part of it
}

// otherModule is the reason why only `make soak` runs a test in another module of this repository.
const otherModule = "a module of its own"

func main() {
	packages := map[string][]test{}
	var modules []string // other modules, which only make soak tests
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && name != ".." {
			return filepath.SkipDir
		}
		tests, err := read(path)
		if len(tests) > 0 {
			packages[strings.TrimPrefix(path, "../")] = tests
		}
		if _, none := os.Stat(filepath.Join(path, "go.mod")); none == nil && path != ".." {
			modules = append(modules, strings.TrimPrefix(path, "../"))
		}
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "tiers:", err)
		os.Exit(1)
	}
	for name, tests := range packages {
		if path.Dir(name) == "tools" && !slices.Contains(modules, name) {
			delete(packages, name) // make lint runs them
		}
		if slices.ContainsFunc(modules, func(module string) bool { return name == module || strings.HasPrefix(name, module+"/") }) {
			for i := range tests {
				tests[i].soak = otherModule
			}
		}
	}
	if len(os.Args) > 1 {
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			if !slices.ContainsFunc(packages[name], func(t test) bool { return t.soak == "" && !t.servers }) {
				fmt.Println(path.Join("github.com/oversell/oversell", name))
			}
		}
		return
	}
	print(packages)
}

func read(dir string) ([]test, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	functions := map[string]*ast.FuncDecl{}
	var tests []test
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range parsed.Decls {
			switch f, ok := declaration.(*ast.FuncDecl); {
			case !ok || f.Body == nil:
			case f.Recv != nil:
				functions["."+f.Name.Name] = f
			default:
				functions[f.Name.Name] = f
			}
		}
	}
	for name, f := range functions {
		if strings.HasPrefix(name, "Test") && name != "TestMain" {
			t := test{name: name}
			t.add(f, functions, map[string]bool{})
			tests = append(tests, t)
		}
	}
	slices.SortFunc(tests, func(a, b test) int { return strings.Compare(a.name, b.name) })
	return tests, nil
}

// starters are packages whose functions start servers, and skip a test under `make quick`.
var starters = []string{"enginetest", "localservertest"}

// skipping are further functions that skip a test under `make quick`.
var skipping = []string{"tier.Test", "shoptest.Needs", "shoptest.Example"}

// add adds the reasons from the calls in a function, and follows calls of functions in the same package.
func (t *test) add(f *ast.FuncDecl, functions map[string]*ast.FuncDecl, seen map[string]bool) {
	if seen[f.Name.Name] {
		return
	}
	seen[f.Name.Name] = true
	depth := 0 // depth of function literals, which are subtests
	var stack []ast.Node
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if n == nil {
			if _, ok := stack[len(stack)-1].(*ast.FuncLit); ok {
				depth--
			}
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if _, ok := n.(*ast.FuncLit); ok {
			depth++
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if name, ok := call.Fun.(*ast.Ident); ok && functions[name.Name] != nil {
			t.add(functions[name.Name], functions, seen)
		}
		selected, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if method := functions["."+selected.Sel.Name]; method != nil {
			var of test // only the field servers of this copy is used, since a method of another type may have the same name
			of.add(method, functions, seen)
			t.servers = t.servers || of.servers
		}
		from, ok := selected.X.(*ast.Ident)
		switch {
		case !ok:
		case slices.Contains(starters, from.Name) && selected.Sel.Name != "Embedded" && selected.Sel.Name != "Serve", slices.Contains(skipping, from.Name+"."+selected.Sel.Name):
			t.servers = true
		case from.Name == "tier" && selected.Sel.Name == "Soak":
			why := "the table of the test gives the reason for each long row"
			if text, ok := call.Args[1].(*ast.BasicLit); ok {
				why, _ = strconv.Unquote(text.Value)
			}
			if whole := depth == 0 && f.Name.Name == t.name && !conditional(stack); whole {
				t.soak = why
			} else if t.part == "" {
				t.part = why
			}
		}
		return true
	})
}

// conditional reports whether a stack of nodes contains an if, a case or a loop.
func conditional(stack []ast.Node) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.IfStmt, *ast.CaseClause, *ast.RangeStmt, *ast.ForStmt:
			return true
		}
		return false
	})
}

func print(packages map[string][]test) {
	fmt.Print(`<!-- written by make generate -->
# Tests

This page shows a developer what ` + "`make quick`, `make test` and `make soak`" + ` run. Each command also runs the tests of the command before it.
If Chromium is installed, make test also runs TestLivePage of e2e.

`)
	names := slices.Sorted(maps.Keys(packages))
	var sum [3]int
	for _, name := range names {
		for _, t := range packages[name] {
			switch {
			case t.soak != "":
				sum[2]++
				continue
			case t.servers:
				sum[1]++
			default:
				sum[0]++
			}
			if t.part != "" {
				sum[2]++
			}
		}
	}
	fmt.Printf("`make quick` has %d tests, `make test` %d more, and `make soak` %d more.\n", sum[0], sum[1], sum[2])
	fmt.Print("\n## Only in make soak\n\nEach line gives the reason. If a test is in brackets, make test runs a part of it.\n\n")
	held := map[string][]string{} // tests by reason
	var reasons []string
	hold := func(why, name string) {
		if why == "" || why == otherModule {
			return // the page only counts these tests
		}
		if text, _, _ := strings.Cut(why, ": "); text == "no other test has it" {
			why = "slow, and no other test covers the same" // instead of the test's own reason, which names the other test
		}
		if held[why] == nil {
			reasons = append(reasons, why)
		}
		held[why] = append(held[why], name)
	}
	for _, name := range names {
		for _, t := range packages[name] {
			if t.soak != "" {
				hold(t.soak, t.name)
			} else {
				hold(t.part, "("+t.name+")")
			}
		}
	}
	for _, why := range reasons {
		fmt.Printf("- %s: %s\n", strings.Join(held[why], ", "), why)
	}
}
