package main

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

// forbidden says which rooms may never be reached from which, at any depth:
// the one way of imports in docs/design.md.
var forbidden = map[string][]string{
	"internal/product":                       {"internal/purchase", "internal/lockstrategy", "internal/audit"},
	"internal/purchase":                      {"internal/lockstrategy", "internal/audit", "internal/engine", "internal/live"},
	"internal/lockstrategy":                  {"internal/audit", "internal/engine", "internal/live", "internal/rush"},
	"internal/lockstrategy/deps":             {"internal/lockstrategy/lease", "internal/lockstrategy/waiting", "internal/engine", "internal/audit"},
	"internal/lockstrategy/lease":            {"internal/lockstrategy/waiting", "internal/lockstrategy/rediskey", "internal/engine", "internal/audit"},
	"internal/lockstrategy/waiting":          {"internal/lockstrategy/rediskey", "internal/lockstrategy/quorum", "internal/engine", "internal/audit"},
	"internal/lockstrategy/rediskey":         {"internal/lockstrategy/quorum", "internal/engine", "internal/audit"},
	"internal/lockstrategy/quorum":           {"internal/lockstrategy/lease", "internal/lockstrategy/waiting", "internal/engine", "internal/audit"},
	"internal/lockstrategy/orderstream":      {"internal/lockstrategy/lease", "internal/lockstrategy/waiting", "internal/engine", "internal/audit"},
	"internal/audit":                         {"internal/lockstrategy", "internal/engine", "internal/live", "internal/rush"},
	"internal/lockstrategy/onengine":         {"internal/audit", "internal/explore", "internal/fault", "internal/verify", "internal/live", "internal/rush"},
	"internal/lockstrategy/lockstrategytest": {"internal/explore", "internal/fault", "internal/verify", "internal/live", "internal/rush"},
	"internal/explore":                       {"internal/verify", "internal/fault", "internal/live", "internal/rush"},
	"internal/explore/exploretest":           {"internal/verify", "internal/fault", "internal/live", "internal/rush"},
	"internal/explore/promisetest":           {"internal/"}, // all of it is a test
	"internal/play":                          {"internal/verify", "internal/fault", "internal/live", "internal/rush"},
	"internal/play/child":                    {"internal/verify", "internal/fault", "internal/live", "internal/rush", "internal/play/host"},
	"internal/play/host":                     {"internal/verify", "internal/fault", "internal/live", "internal/rush", "internal/play/terminal"},
	"internal/play/level":                    {"internal/verify", "internal/fault", "internal/live", "internal/rush", "internal/play/child", "internal/play/host", "internal/play/terminal"},
	"internal/play/results":                  {"internal/explore", "internal/lockstrategy", "internal/engine"},
	"internal/play/terminal":                 {"internal/verify", "internal/fault", "internal/live", "internal/rush", "internal/play/child", "internal/play/host"},
	"internal/report":                        {"internal/"},
	"internal/problem":                       {"internal/"},
	"internal/page":                          {"internal/"},
	"internal/engine/enginetest":             {"internal/lockstrategy", "internal/explore", "internal/fault", "internal/verify", "internal/live", "internal/rush"},
	"internal/localserver/localservertest":   {"internal/engine", "internal/product", "internal/purchase"},
	"internal/explore/run":                   {"internal/verify", "internal/fault", "internal/live", "internal/rush"},
	"internal/explore/gate":                  {"internal/explore/run", "internal/explore/restore", "internal/explore/standstill", "internal/lockstrategy", "internal/engine"},
	"internal/explore/standstill":            {"internal/explore/run", "internal/explore/restore", "internal/engine"},
	"internal/explore/restore":               {"internal/explore/run", "internal/explore/gate", "internal/lockstrategy", "internal/engine"},
	"internal/explore/database":              {"internal/explore/run", "internal/explore/gate", "internal/lockstrategy", "internal/engine"},
	"internal/explore/schedule":              {"internal/explore/run", "internal/explore/gate", "internal/explore/database", "internal/lockstrategy", "internal/engine"},
	"internal/explore/witness":               {"internal/explore/schedule", "internal/explore/run", "internal/lockstrategy", "internal/engine"},
	"internal/explore/wire":                  {"internal/explore/run", "internal/explore/gate", "internal/explore/foreign", "internal/explore/process", "internal/lockstrategy", "internal/engine"},
	"internal/explore/wire/mysql":            {"internal/explore/run", "internal/explore/gate", "internal/explore/foreign", "internal/explore/process", "internal/lockstrategy", "internal/engine"},
	"internal/explore/wire/postgres":         {"internal/explore/run", "internal/explore/gate", "internal/explore/foreign", "internal/explore/process", "internal/lockstrategy", "internal/engine"},
	"internal/explore/wire/redis":            {"internal/explore/run", "internal/explore/gate", "internal/explore/foreign", "internal/explore/process", "internal/lockstrategy", "internal/engine"},
	"internal/explore/wire/statement":        {"internal/explore/run", "internal/explore/gate", "internal/explore/foreign", "internal/lockstrategy", "internal/engine"},
	"internal/explore/wire/wiretest":         {"internal/explore/run", "internal/explore/gate", "internal/explore/foreign", "internal/lockstrategy", "internal/engine"},
	"internal/explore/process":               {"internal/"}, // it knows processes alone
	"internal/explore/app":                   {"internal/explore/", "internal/lockstrategy", "internal/engine"},
	"internal/explore/foreign":               {"internal/explore/run", "internal/explore/gate", "internal/explore/standstill", "internal/explore/restore", "internal/lockstrategy", "internal/engine"},
	"internal/redisscript":                   {"internal/lockstrategy", "internal/explore", "internal/engine"},
	"internal/engine":                        {"internal/product", "internal/purchase", "internal/lockstrategy", "internal/rush"},
	"internal/localserver":                   {"internal/engine", "internal/product", "internal/purchase"},
	"internal/failpoint":                     {"internal/lockstrategy", "internal/engine", "internal/audit", "internal/rush"},
	"internal/fault":                         {"internal/explore", "internal/verify", "internal/live"},
	"internal/verify":                        {"internal/live"},
	"internal/sizing":                        {"internal/"},
	"internal/sizing/measure":                {"internal/lockstrategy", "internal/engine", "internal/localserver", "internal/live"},
	"internal/sweep":                         {"internal/lockstrategy", "internal/engine", "internal/localserver", "internal/live", "internal/sizing"},
	"internal/chart":                         {"internal/"},
	"internal/soak":                          {"internal/lockstrategy", "internal/engine", "internal/localserver", "internal/live", "internal/sizing"},
	"internal/live":                          {"internal/product", "internal/purchase", "internal/lockstrategy", "internal/rush"},
	"internal/live/runs":                     {"internal/lockstrategy", "internal/engine", "internal/localserver", "internal/fault", "internal/strike"},
	"internal/strike":                        {"internal/explore", "internal/verify", "internal/live"},
	"internal/history":                       {"internal/"},
	"internal/zookeeper":                     {"internal/"},
	"internal/sqlconn":                       {"internal/"},
	"internal/verdict":                       {"internal/"},
	"internal/promise":                       {"internal/lockstrategy", "internal/fault", "internal/verify", "internal/engine"},
	"internal/sqlerror":                      {"internal/"},
	"internal/topology":                      {"internal/"}, // rlock reaches it, and it brings go-redis alone, which rlock has
	"internal/dialect":                       {"internal/"},
	"internal/keyed":                         {"internal/"},
	"internal/quantile":                      {"internal/"},
	"rlock":                                  {"internal/"}, // other programs import these two: of ours they may reach leaves alone
	"locktest":                               {"internal/"},
	"internal/room":                          {"internal/lockstrategy", "internal/engine", "internal/audit", "internal/live", "internal/rush"},
	"internal/exercise":                      {"internal/live"},
	"exercises":                              {"internal/"},                                                             // content
	"exercises/kata":                         {"internal/engine", "internal/explore", "internal/rush", "internal/live"}, // a learner's code brings it along
	"exercises/judge":                        {"internal/exercise", "internal/rush", "internal/verify", "internal/fault", "internal/live"},
	"internal/rush":                          {"internal/lockstrategy", "internal/engine", "internal/localserver", "internal/live"},
}

// leaves are the rooms that any other may reach, since they import nothing but
// the standard library: TestLeaves.
var leaves = []string{"internal/keyed", "internal/quantile"}

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Deps       []string
}

// TestImportDirection holds the rooms apart.
func TestImportDirection(t *testing.T) {
	for _, p := range list(t) {
		room := strings.TrimPrefix(p.ImportPath, module)
		if _, known := forbidden[room]; strings.HasPrefix(room, "internal/") && !known {
			t.Errorf("%s has no row in the table of what it must not reach", room)
		}
		for _, dep := range p.Deps {
			dep, ours := strings.CutPrefix(dep, module)
			if !ours || slices.Contains(leaves, dep) || room == "rlock" && dep == "internal/topology" {
				continue
			}
			for _, no := range forbidden[room] {
				if dep == no || strings.HasPrefix(dep, no+"/") || (strings.HasSuffix(no, "/") && strings.HasPrefix(dep, no)) {
					t.Errorf("%s reaches %s", room, dep)
				}
			}
			if strings.HasPrefix(dep, "cmd/") {
				t.Errorf("%s reaches %s", room, dep)
			}
		}
	}
	if len(list(t)) < len(forbidden) {
		t.Error("go list has shown too few packages to prove anything")
	}
}

// TestSearchKnowsNoServer: the explorer's search talks to schedule.Runner, so that
// gates for another protocol and another standstill need no change there.
func TestSearchKnowsNoServer(t *testing.T) {
	files, err := filepath.Glob("../../internal/explore/*.go")
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
			for _, no := range []string{"database/sql", "go-redis", "internal/explore/gate", "internal/explore/database", "internal/explore/restore", "internal/explore/standstill"} {
				if strings.Contains(i.Path.Value, no) {
					t.Errorf("%s imports %s", filepath.Base(file), i.Path.Value)
				}
			}
		}
	}
}

// TestLeaves: what every room may import must drag nothing along.
func TestLeaves(t *testing.T) {
	found := 0
	for _, p := range list(t) {
		if !slices.Contains(leaves, strings.TrimPrefix(p.ImportPath, module)) {
			continue
		}
		found++
		for _, dep := range p.Deps {
			if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") {
				t.Errorf("%s reaches %s; a leaf imports the standard library alone", p.ImportPath, dep)
			}
		}
	}
	if found != len(leaves) {
		t.Errorf("%d of %d leaves are there", found, len(leaves))
	}
}

// TestGinStaysInHTTP: a strategy or a query must not know of requests.
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

// list is every package of the project, without tests.
func list(t *testing.T) (packages []goPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Deps", module+"...").Output()
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
