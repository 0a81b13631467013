package lockstrategy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
)

// servers are the strategies with the name of a server or program. Such names are also flags,
// folders, and keys in reports about servers.
var servers = []string{"redis", "redlock", "zookeeper", "etcd"}

// notStrategies are the literals that equal a strategy's name and mean something else, by folder.
var notStrategies = []struct {
	folder string
	names  []string
	reason string
}{
	{"cmd/shop", servers, "the flags --redis, --redlock, --zookeeper, --etcd"},
	{"internal/engine", servers, "servers, as /readyz names them"},
	{"internal/explore", []string{"redis", "redlock"}, "servers, as a witness names them"},
	{"internal/explore/draft", []string{"redisson"}, "a client library for Java"},
	{"internal/explore/serverstate", []string{"none"}, "the TYPE of a Redis key that is not there"},
	{"internal/explore/wire", []string{"serializable"}, "an isolation level"},
	{"internal/testbed", append([]string{"none", "serializable"}, servers...), "programs and folders; none is an empty list of servers; an isolation level"},
	{"internal/lockstrategy/deps", servers, "servers, as errors name them"},
	{"internal/web/webtest", []string{"for-update"}, "a helper of tests, which keeps a buyer waiting"},
	{"internal/judge/ci", []string{"redis"}, "a server that a program needs"},
	{"internal/judge/promise", servers, "servers that a fault strikes"},
}

// A mention is a literal that names a strategy.
type mention struct {
	strategy string
	at       token.Position
	compared bool // compared with a name, or used as a map key: a trait should replace it
}

// prose matches fields and functions with text for people.
var prose = regexp.MustCompile(`^(Use|Short|Long|Example|Summary|Guarantees|HowItBreaks|BreaksWhen|Cost|Source|Notes|Aliases|NoPromise|NotExplored)$`)

// mentions finds the strategies that a file names. A literal counts if it equals a name, or
// contains a name with a hyphen as a word. Text for people does not count: help, examples, and the
// prose of entries.
func mentions(files *token.FileSet, file *ast.File) (found []mention) {
	names, words := lockstrategy.Names(), hyphenated()
	var stack []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || isProse(stack) {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			return true
		}
		for _, name := range names {
			if text == name || words[name] != nil && words[name].MatchString(text) {
				found = append(found, mention{name, files.Position(literal.Pos()), compares(stack)})
			}
		}
		return true
	})
	return found
}

// hyphenated returns a pattern for each name with a hyphen: other names also occur as English
// words.
var hyphenated = sync.OnceValue(func() map[string]*regexp.Regexp {
	words := map[string]*regexp.Regexp{}
	for _, name := range lockstrategy.Names() {
		if strings.Contains(name, "-") {
			words[name] = regexp.MustCompile(`(^|[^\w-])` + name + `([^\w-]|$|-$)`)
		}
	}
	return words
})

// isProse reports whether the innermost literal is text for people, or an import.
func isProse(stack []ast.Node) bool {
	for i, n := range stack {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field: // a struct tag
			return true
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && prose.MatchString(key.Name) && i+1 < len(stack) && stack[i+1] == n.Value {
				return true
			}
		}
	}
	return false
}

// compares reports whether the innermost literal is compared with a strategy's name.
func compares(stack []ast.Node) bool {
	if len(stack) < 2 {
		return false
	}
	binary, ok := stack[len(stack)-2].(*ast.BinaryExpr)
	if !ok {
		return false
	}
	for _, side := range []ast.Expr{binary.X, binary.Y} {
		if field, ok := side.(*ast.SelectorExpr); ok && (field.Sel.Name == "Name" || field.Sel.Name == "Strategy") {
			return true
		}
	}
	return false
}

// TestStrategiesAreNotNamed: outside its own file, tests and documents, no string literal names a
// strategy. Other code must use a trait of the entry.
func TestStrategiesAreNotNamed(t *testing.T) {
	const root = "../.."
	used, own := map[string]bool{}, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() && path == filepath.Join(root, "examples"):
			return filepath.SkipDir // separate programs, whose modes may share a name
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		folder = filepath.ToSlash(folder)
		for _, m := range mentions(files, file) {
			if path == filepath.Join(root, "internal/lockstrategy", strings.ReplaceAll(m.strategy, "-", "_")+".go") {
				own++
				continue
			}
			if reason := excused(folder, m); reason != "" {
				used[reason] = true
				continue
			}
			t.Errorf("%s names the strategy %s: make what it knows of it a trait of the entry", m.at, m.strategy)
		}
		return nil
	})
	require.NoError(t, err)
	if own < len(lockstrategy.Names()) {
		t.Errorf("%d mentions in the strategies' own files: the search finds too little", own)
	}
	for _, e := range notStrategies {
		if !used[e.reason] {
			t.Errorf("the exception for %s (%s) is not needed any more", e.folder, e.reason)
		}
	}
}

// excused returns the reason why a literal means something else. A comparison with a name is never
// excused.
func excused(folder string, m mention) (reason string) {
	for _, e := range notStrategies {
		inside := folder == e.folder || strings.HasPrefix(folder, e.folder+"/")
		if inside && !m.compared && slices.Contains(e.names, m.strategy) {
			return e.reason
		}
	}
	return ""
}
