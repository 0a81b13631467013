// Command gosec asks the rules of github.com/securego/gosec about all packages of a module, and
// exits with 1 if one of them has a find.
//
// gosec's own command loads one package at a time, by a call of the go command for each: that
// takes minutes here. This one loads all of them at once.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"runtime"

	"github.com/securego/gosec/v2"
	"github.com/securego/gosec/v2/analyzers"
	"github.com/securego/gosec/v2/rules"
	"golang.org/x/tools/go/packages"
)

// main takes the folder of the module, then the rules that are not asked.
func main() {
	finds, err := check(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gosec:", err)
		os.Exit(2)
	}
	if finds > 0 {
		os.Exit(1)
	}
}

func check(folder string, excluded []string) (finds int, err error) {
	all, err := packages.Load(&packages.Config{Mode: gosec.LoadMode, Dir: folder}, "./...")
	if err != nil {
		return 0, err
	}
	if packages.PrintErrors(all) > 0 || len(all) == 0 {
		return 0, fmt.Errorf("%d packages of %s, and not all of them could be loaded", len(all), folder)
	}
	const tests, generated, suppressed = false, true, false
	a := gosec.NewAnalyzer(gosec.NewConfig(), tests, generated, suppressed, runtime.NumCPU(), log.New(io.Discard, "", 0))
	a.LoadRules(rules.Generate(suppressed, rules.NewRuleFilter(true, excluded...)).RulesInfo())
	a.LoadAnalyzers(analyzers.Generate(suppressed, analyzers.NewAnalyzerFilter(true, excluded...)).AnalyzersInfo())
	for _, p := range all {
		a.CheckRules(p)
		a.CheckAnalyzers(p)
	}
	issues, metrics, failed := a.Report()
	for _, i := range issues {
		fmt.Printf("%s:%s: %s: %s\n", i.File, i.Line, i.RuleID, i.What)
	}
	if len(failed) > 0 || metrics.NumFiles == 0 {
		return 0, fmt.Errorf("%d files were read; errors: %v", metrics.NumFiles, failed)
	}
	return len(issues), nil
}
