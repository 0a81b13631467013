// Package internal_test checks the direction of the imports between the folders of the project.
package internal_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/oversell/oversell/"

// allowed maps a folder to the folders that its packages may import directly. The row with the
// longest matching folder applies to a package. An entry includes the folders below it, but
// "internal/engine." with a full stop means that package alone.
var allowed = map[string][]string{
	// Public packages. Other programs import them, so they import only small packages of this
	// project.
	"rlock":      {"internal/lockstrategy/keyed", "internal/engine/topology"},
	"locktest":   {"internal/load/pulse", "internal/load/quantile"},
	"migrations": {},

	// Packages that import nothing of the project.
	"internal/engine/dialect":     {},
	"internal/engine/sqlconn":     {},
	"internal/engine/sqlerror":    {},
	"internal/engine/topology":    {},
	"internal/engine/zookeeper":   {},
	"internal/explore/process":    {},
	"internal/expect":             {},
	"internal/golden":             {},
	"internal/judge/chart":        {},
	"internal/judge/history":      {},
	"internal/judge/report":       {},
	"internal/judge/verdict":      {},
	"internal/load/pulse":         {},
	"internal/load/quantile":      {},
	"internal/lockstrategy/keyed": {},
	"internal/nearest":            {},
	"internal/plural":             {},
	"internal/tier":               {},
	"internal/version":            {},
	"internal/web/page":           {},
	"internal/web/problem":        {},

	// The shop: the domain, its strategies, and the servers that it connects to.
	"internal/product":                             {"internal/product/stock", "internal/engine/sqlerror", "internal/web/problem"},
	"internal/product/stock":                       {},
	"internal/purchase":                            {"internal/product", "internal/engine/dialect", "internal/engine/sqlerror", "internal/lockstrategy/keyed", "internal/web/problem", "internal/nearest"},
	"internal/judge/promise":                       {"internal/judge/verdict"},
	"internal/lockstrategy":                        {"internal/product", "internal/purchase", "internal/lockstrategy", "internal/engine/dialect", "internal/engine/topology", "internal/engine/zookeeper", "internal/judge/promise", "internal/judge/verdict", "rlock"},
	"internal/lockstrategy/onengine":               {"internal/engine.", "internal/lockstrategy/deps"},
	"internal/lockstrategy/lockstrategytest":       {"internal/product", "internal/purchase", "internal/lockstrategy", "internal/engine", "internal/judge/audit", "internal/judge/promise", "internal/judge/verdict", "internal/expect", "internal/require"},
	"internal/testbed":                             {"internal/testbed/localserver", "internal/engine."},
	"internal/testbed/localserver":                 {"internal/engine/dialect", "internal/engine/topology", "internal/nearest"},
	"internal/testbed/localserver/localservertest": {"internal/testbed/localserver", "internal/expect", "internal/require", "internal/tier"},
	"internal/require":                             {"internal/expect"},
	"internal/shoptest":                            {"internal/testbed/localserver", "internal/require", "internal/tier"},
	"internal/engine/enginetest":                   {"internal/engine", "internal/testbed/localserver", "internal/expect", "internal/require", "internal/tier"},
	"internal/engine":                              {"internal/engine", "internal/product/stock", "internal/testbed/localserver", "migrations", "internal/nearest"},

	// The instruments, which judge, generate load, inject faults and explore.
	"internal/judge/audit":             {"internal/product", "internal/purchase", "internal/judge", "internal/load/pulse", "internal/load/quantile", "internal/web/problem", "internal/plural"},
	"internal/load/sweep":              {"internal/engine.", "internal/judge/chart", "internal/judge/report", "internal/judge/trial", "internal/load/measure", "internal/lockstrategy.", "internal/lockstrategy/onengine", "internal/product/stock", "internal/purchase", "internal/web.", "internal/plural"},
	"internal/load":                    {"internal/purchase", "internal/load", "internal/judge/audit", "internal/judge/linear", "internal/judge/report", "internal/judge/verdict", "internal/engine/sqlerror", "internal/plural"},
	"internal/fault/failpoint":         {"internal/purchase", "internal/engine/sqlconn", "internal/judge/history"},
	"internal/fault":                   {"internal/fault", "internal/purchase", "internal/lockstrategy.", "internal/engine", "internal/testbed", "internal/load/buyers", "internal/load/pulse", "internal/load/rush", "internal/judge/audit", "internal/judge/history", "internal/judge/promise", "internal/plural"},
	"internal/explore":                 {"internal/explore", "internal/product", "internal/purchase", "internal/lockstrategy", "internal/engine", "internal/judge/audit", "internal/judge/report", "internal/judge/verdict", "rlock", "internal/nearest", "internal/plural"},
	"internal/explore/app":             {"internal/explore/effect", "internal/explore/schedule", "internal/explore/serverstate", "internal/explore/witness", "internal/load/pulse", "internal/testbed/localserver", "internal/nearest"},
	"internal/explore/conduct":         {"internal/explore/schedule", "internal/explore/witness"},
	"internal/explore/draft":           {"internal/explore/app", "internal/judge/report"},
	"internal/explore/effect":          {"internal/explore/schedule"},
	"internal/explore/fold":            {"internal/explore/effect", "internal/explore/serverstate", "internal/explore/witness", "internal/judge/verdict"},
	"internal/explore/findings":        {"internal/engine.", "internal/explore.", "internal/explore/target", "internal/explore/witness", "internal/judge/report", "internal/judge/verdict", "internal/lockstrategy.", "internal/plural"},
	"internal/explore/program":         {"internal/explore.", "internal/explore/app", "internal/explore/findings", "internal/explore/process", "internal/explore/target", "internal/judge/verdict", "internal/nearest"},
	"internal/explore/gate":            {"internal/explore/effect", "internal/explore/schedule", "internal/explore/serverstate", "internal/lockstrategy/redisscript", "internal/plural"},
	"internal/explore/rows":            {"internal/explore/effect", "internal/explore/schedule", "internal/explore/serverstate", "internal/explore/wire", "internal/load/pulse"},
	"internal/explore/scan":            {"internal/explore.", "internal/explore/app", "internal/explore/findings", "internal/explore/program", "internal/explore/target", "internal/judge/report", "internal/judge/verdict", "internal/plural"},
	"internal/explore/scan/source":     {"internal/explore/app"},
	"internal/explore/schedule":        {"internal/explore/witness", "internal/judge/verdict"},
	"internal/explore/serverstate":     {"internal/engine/dialect", "internal/explore/effect", "internal/explore/schedule", "internal/judge/audit", "internal/product/stock"},
	"internal/explore/standstill":      {"internal/explore/gate", "internal/lockstrategy", "rlock"},
	"internal/explore/witness":         {"internal/judge/verdict", "internal/plural"},
	"internal/explore/target":          {"internal/explore/app", "internal/explore/conduct", "internal/explore/effect", "internal/explore/fold", "internal/explore/rows", "internal/explore/schedule", "internal/explore/serverstate", "internal/explore/target/backend", "internal/explore/target/client", "internal/explore/target/gates", "internal/explore/target/instance", "internal/explore/target/naming", "internal/explore/target/oracle", "internal/explore/target/rest", "internal/explore/target/retry", "internal/explore/target/session", "internal/explore/wire", "internal/explore/witness", "internal/judge/verdict", "internal/load/pulse"},
	"internal/explore/target/backend":  {"internal/engine/dialect", "internal/explore/app", "internal/explore/effect", "internal/explore/schedule", "internal/explore/serverstate", "internal/explore/target/gates", "internal/explore/target/naming", "internal/explore/wire", "internal/load/pulse"},
	"internal/explore/target/client":   {"internal/explore/app", "internal/explore/target/gates", "internal/explore/target/naming", "internal/explore/wire"},
	"internal/explore/target/gates":    {"internal/explore/app", "internal/explore/effect", "internal/explore/rows", "internal/explore/schedule", "internal/explore/target/naming", "internal/explore/wire", "internal/explore/witness", "internal/load/pulse"},
	"internal/explore/target/instance": {"internal/explore/app", "internal/explore/process", "internal/explore/schedule", "internal/explore/target/backend", "internal/explore/target/client", "internal/explore/target/gates", "internal/explore/wire", "internal/load/buyers", "internal/load/pulse"},
	"internal/explore/target/naming":   {"internal/explore/schedule"},
	"internal/explore/target/oracle":   {"internal/explore/target/naming"},
	"internal/explore/target/rest":     {"internal/explore/target/backend", "internal/explore/target/client", "internal/explore/target/gates", "internal/explore/target/instance", "internal/explore/target/naming", "internal/explore/wire"},
	"internal/explore/target/retry":    {"internal/explore/target/naming"},
	"internal/explore/target/session":  {"internal/explore/app", "internal/explore/schedule", "internal/explore/target/backend", "internal/explore/target/client", "internal/explore/target/gates", "internal/explore/target/instance", "internal/explore/target/naming", "internal/explore/target/rest", "internal/explore/wire", "internal/load/pulse"},
	"internal/explore/wire":            {"internal/explore/wire", "internal/explore/effect", "internal/explore/schedule", "internal/explore/witness", "internal/plural"},
	"internal/judge/ci":                {"internal/explore.", "internal/explore/app", "internal/explore/findings", "internal/explore/program", "internal/explore/scan.", "internal/judge/ci/format", "internal/judge/ci/result", "internal/judge/promise", "internal/judge/report", "internal/judge/trial", "internal/judge/verdict", "internal/judge/verify", "internal/testbed/localserver", "internal/plural"},
	"internal/judge/ci/format":         {"internal/judge/ci/result", "internal/judge/report"},
	"internal/judge/ci/result":         {"internal/explore/schedule", "internal/explore/witness", "internal/judge/promise", "internal/judge/report", "internal/judge/verdict", "internal/plural"},
	"internal/judge/ci/system":         {"internal/judge/ci/format", "internal/judge/ci/result"},
	"internal/judge/linear":            {"internal/judge/audit", "internal/purchase"},
	"internal/judge/trial":             {"internal/product", "internal/purchase", "internal/lockstrategy", "internal/engine", "internal/fault", "internal/judge", "internal/load/rush", "internal/teach/live/runs", "internal/testbed", "internal/web", "internal/nearest", "internal/plural"},
	"internal/judge/verify":            {"internal/fault", "internal/explore.", "internal/load", "internal/judge", "internal/purchase", "internal/lockstrategy", "internal/engine", "internal/testbed", "internal/web", "internal/nearest", "internal/plural"},

	"internal/web/webtest": {"internal/expect", "internal/require", "internal/judge/audit", "internal/web/problem"},
	"internal/web":         {"internal/web/problem", "internal/product", "internal/purchase", "internal/lockstrategy", "internal/engine", "internal/fault/failpoint", "internal/judge/audit", "internal/judge/history", "internal/judge/promise", "internal/load/pulse", "internal/teach", "internal/testbed/localserver"},

	// The classroom.
	"internal/teach":           {"internal/teach", "internal/explore", "internal/product", "internal/purchase", "internal/lockstrategy", "internal/engine", "internal/judge", "internal/load/quantile", "internal/web/page", "internal/web/problem", "internal/nearest", "internal/plural"},
	"internal/teach/live/runs": {"internal/teach/live", "internal/product", "internal/load/rush", "internal/judge", "internal/web/problem"},
	"internal/teach/exercise":  {"exercises", "internal/explore", "internal/teach/childlog", "internal/engine", "internal/fault", "internal/testbed", "internal/lockstrategy", "internal/judge", "internal/load/rush", "internal/nearest", "internal/plural"},
	"exercises":                {"exercises/kata", "internal/nearest"},
	"exercises/kata":           {"internal/product", "internal/purchase", "internal/lockstrategy/deps", "internal/lockstrategy/redisscript", "rlock"},
	"exercises/judge":          {"exercises", "internal/product", "internal/purchase", "internal/lockstrategy", "internal/engine", "internal/testbed", "internal/explore", "internal/fault/failpoint", "internal/judge/audit", "internal/judge/history"},
}

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

// row returns the folder of the row that applies to a package, "" if there is none.
func row(path string) string {
	for ; path != "." && path != "/"; path = filepath.Dir(path) {
		if _, ok := allowed[path]; ok {
			return path
		}
	}
	return ""
}

func TestImportDirection(t *testing.T) {
	used := map[string]bool{}
	for _, p := range list(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		folder := row(path)
		if folder == "" {
			if strings.HasPrefix(path, "internal/") {
				t.Errorf("%s has no row in the table of what it may import", path)
			}
			continue
		}
		for _, dep := range p.Imports {
			dep, ours := strings.CutPrefix(dep, module)
			if !ours {
				continue
			}
			if !slices.ContainsFunc(allowed[folder], func(entry string) bool {
				one, alone := strings.CutSuffix(entry, ".")
				if dep == one || !alone && strings.HasPrefix(dep, entry+"/") {
					used[folder+" "+entry] = true
					return true
				}
				return false
			}) {
				t.Errorf("%s imports %s", path, dep)
			}
		}
	}
	for folder, entries := range allowed {
		for _, entry := range entries {
			if !used[folder+" "+entry] {
				t.Errorf("%s: nothing imports %s; remove it from the row", folder, entry)
			}
		}
	}
}

// TestLeaves: three packages that the public packages import need only the standard library.
func TestLeaves(t *testing.T) {
	found := 0
	for _, p := range list(t) {
		if path := strings.TrimPrefix(p.ImportPath, module); path != "internal/lockstrategy/keyed" && path != "internal/load/pulse" && path != "internal/load/quantile" {
			continue
		}
		found++
		for _, dep := range p.Deps {
			if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") {
				t.Errorf("%s reaches %s; it may import only the standard library", p.ImportPath, dep)
			}
		}
	}
	if found != 3 {
		t.Errorf("found %d of 3 packages", found)
	}
}

// TestSearchKnowsNoServer: the explorer's search imports no server's client. It talks to
// schedule.Runner, so another protocol needs no change there.
func TestSearchKnowsNoServer(t *testing.T) {
	files, err := filepath.Glob("explore/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range source.Imports {
			for _, no := range []string{"database/sql", "go-redis", "internal/explore/gate", "internal/explore/serverstate", "internal/explore/standstill"} {
				if strings.Contains(i.Path.Value, no) {
					t.Errorf("%s imports %s", filepath.Base(file), i.Path.Value)
				}
			}
		}
	}
}

// TestGinStaysInHTTP: only HTTP files import gin. A strategy or a query must not depend on
// requests.
func TestGinStaysInHTTP(t *testing.T) {
	found := 0
	for _, p := range list(t) {
		for _, file := range p.GoFiles {
			source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range source.Imports {
				if i.Path.Value != `"github.com/gin-gonic/gin"` {
					continue
				}
				found++
				if !strings.HasSuffix(p.ImportPath, "/cmd/shop") && !strings.HasSuffix(file, "http.go") {
					t.Errorf("%s: %s imports gin", p.ImportPath, file)
				}
			}
		}
	}
	if found == 0 {
		t.Error("nothing imports gin: the search finds nothing")
	}
}

// list returns every package of the project, without tests.
func list(t *testing.T) (packages []goPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}
