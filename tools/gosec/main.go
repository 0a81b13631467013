// Command gosec checks all packages of a module by the rules of github.com/securego/gosec. It
// exits with 1 if a rule reports an issue, and with 2 if a package cannot be loaded.
//
// gosec's own command calls the go command for each package, which takes minutes in this repository. This
// command loads all packages at once.
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

// The arguments are the folder of the module, and the rules to leave out.
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
		return 0, fmt.Errorf("not all of the %d packages of %s could be loaded", len(all), folder)
	}
	// Without this variable, gosec calls the go command for each range statement to learn the version.
	if err := os.Setenv("GOSECGOVERSION", all[0].Module.GoVersion); err != nil {
		return 0, err
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
