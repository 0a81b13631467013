// Command tiers counts the tests that each of make quick, make test and make soak runs, as a page:
//
//	go run -C tools ./tiers > docs/reference/tests.md
//
// It reads the calls of package tier, and the calls that start servers, in the source of the tests.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A test is a function of a package. Without any of these, make quick runs all of it.
type test struct {
	name       string
	soak, part bool // only make soak runs it, or a part of it
	servers    bool // make quick leaves out the test, or a part of it
}

// mostFew is the number of tests beyond make quick up to which a package has no row.
const mostFew = 5

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
				tests[i].soak = true
			}
		}
	}
	print(packages)
}

// read returns the tests of a folder.
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

// starters are the packages whose functions skip a test under make quick.
var starters = []string{"enginetest", "localservertest"}

// skipping are further functions that skip a test under make quick.
var skipping = []string{"tier.Test", "shoptest.Needs", "shoptest.Example"}

// add follows the calls of a function within its package.
func (t *test) add(f *ast.FuncDecl, functions map[string]*ast.FuncDecl, seen map[string]bool) {
	if seen[f.Name.Name] {
		return
	}
	seen[f.Name.Name] = true
	depth := 0 // of function literals: subtests
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
			var of test // a method of another type may have the same name, so its parts may not be this test's
			of.add(method, functions, seen)
			t.servers = t.servers || of.servers
		}
		from, ok := selected.X.(*ast.Ident)
		switch {
		case !ok:
		case slices.Contains(starters, from.Name) && selected.Sel.Name != "Embedded" && selected.Sel.Name != "Serve", slices.Contains(skipping, from.Name+"."+selected.Sel.Name):
			t.servers = true
		case from.Name == "tier" && selected.Sel.Name == "Soak":
			if whole := depth == 0 && f.Name.Name == t.name && !conditional(stack); whole {
				t.soak = true
			} else {
				t.part = true
			}
		}
		return true
	})
}

// conditional reports whether the innermost node of a stack runs only in some cases.
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

This page shows a developer what ` + "`make quick`, `make test` and `make soak`" + ` run. Each runs the tests of the one before it, too.
A test in two columns has parts that only the second command runs.
` + "`make test` also runs TestLivePage of e2e, if Chromium is installed. This lists each test of `make soak`, with the reason:" + `

    grep -rn 'tier.Soak(' --include=*_test.go .

| package | quick | test | soak |
|---|---:|---:|---:|
`)
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range packages {
			if !yield(name) {
				return
			}
		}
	})
	var sum [3]int
	var few []string // packages with at most mostFew tests beyond make quick
	var rest [3]int  // their tests
	for _, name := range names {
		var n [3]int
		for _, t := range packages[name] {
			switch {
			case t.soak:
				n[2]++
				continue
			case t.servers:
				n[1]++
			default:
				n[0]++
			}
			if t.part {
				n[2]++
			}
		}
		for i := range n {
			sum[i] += n[i]
		}
		if n[1]+n[2] > mostFew {
			fmt.Printf("| %s | %d | %d | %d |\n", name, n[0], n[1], n[2])
			continue
		}
		few = append(few, name)
		for i := range n {
			rest[i] += n[i]
		}
	}
	fmt.Printf("| %d other packages | %d | %d | %d |\n", len(few), rest[0], rest[1], rest[2])
	fmt.Printf("| **all** | %d | %d | %d |\n", sum[0], sum[1], sum[2])
}
