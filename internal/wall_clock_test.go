package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wallClock lists the files of the serving code that may convert between numbers and times, with
// the reason. All other code compares values of time.Now, which are monotonic. Otherwise, a wait, a
// lease or a pause could end at once, or an hour too late, when the machine's clock is set.
var wallClock = map[string]string{
	"internal/lockstrategy/getset.go":            "the expiry by the client's clock is what the strategy is about",
	"internal/lockstrategy/redis_lua.go":         "when the buyer called, for waited_ms of a process that may be another one; nothing waits by it",
	"internal/lockstrategy/orderstream/batch.go": "the same, read",
	"internal/purchase/http.go":                  "Shop-Buy-Span, which a rush compares between processes; nothing in the shop reads it",
	"internal/purchase/history.go":               "purchase_time, which is a date for people",
	"internal/teach/live/runs/page.go":           "when a run began, which is a date for people",
}

// TestWaitsAreMonotonic searches for arithmetic with the wall clock in the serving code.
func TestWaitsAreMonotonic(t *testing.T) {
	byWall := []string{"Unix", "UnixNano", "UnixMicro", "UnixMilli", "UTC", "Local", "In"}
	unused := map[string]bool{}
	for file := range wallClock {
		unused[file] = true
	}
	for _, dir := range []string{
		"internal/purchase", "internal/product", "internal/lockstrategy", "internal/engine", "internal/teach/live", "internal/lockstrategy/keyed",
		"internal/engine/sqlconn", "internal/web/problem", "internal/engine/topology", "internal/engine/zookeeper", "internal/engine/dialect", "rlock",
	} {
		goFiles(t, filepath.Join("..", dir), func(path string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains(byWall, method.Sel.Name) {
					return true
				}
				if delete(unused, path); wallClock[path] == "" {
					t.Errorf("%s: %s takes the monotonic reading off a time; say in wallClock why nothing waits by it", path, method.Sel.Name)
				}
				return true
			})
		})
	}
	for file := range unused {
		t.Errorf("%s has no wall clock any more, and is still in wallClock", file)
	}
}

// goFiles calls the function see for each non-test file below dir, with its path in the module.
func goFiles(t *testing.T, dir string, see func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasSuffix(d.Name(), "test") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		see(strings.TrimPrefix(filepath.ToSlash(path), "../"), file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
