package format

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/report"
)

// Limits of GitHub's code scanning (docs.github.com, "SARIF support for code scanning", "Validating your
// SARIF file"): results in a run, and bytes of the compressed file.
const (
	mostResults = 25_000
	mostPacked  = 10 << 20
)

const sarifName = "oversell.sarif"

func sarifFormat() Format {
	return Format{What: "SARIF, for code scanning", Files: func(r result.Result) ([]File, error) {
		file, err := cut(sarifOf(r), mostResults, mostPacked)
		file.Name = sarifName
		return []File{file}, err
	}}
}

var sarifRules = []*sarif.ReportingDescriptor{
	sarifRule(
		"oversell/rule",
		"A schedule breaks a rule of never",
		"In one order of the buyers' commands, a query of `never` returns rows, for example because a unit was sold twice.",
		"Replay the witness with the command in the message. Then make the check and the write one step: a conditional UPDATE, SELECT ... FOR UPDATE, or a lock that survives its lease.",
	),
	sarifRule(
		"oversell/answer",
		"A schedule gives a buyer a wrong answer",
		"In one order of the buyers' commands, a buyer gets an error or no answer, although every server is healthy.",
		"Replay the witness with the command in the message. A deadlock or a timeout usually needs one order of locks, or a retry.",
	),
}

func sarifRule(id, short, full, help string) *sarif.ReportingDescriptor {
	text := func(s string) *sarif.MultiformatMessageString { return sarif.NewMultiformatMessageString().WithText(s) }
	return sarif.NewRule(id).WithShortDescription(text(short)).WithFullDescription(text(full)).WithHelp(text(help))
}

func ruleOf(c result.Check) int {
	if c.Witness == nil || len(c.Witness.Rules) > 0 {
		return 0
	}
	return 1
}

// sarifOf returns the breaks of programs as results. Other checks that do not hold become notifications.
func sarifOf(r result.Result) *sarif.Report {
	run := sarif.NewRunWithInformationURI("oversell", "https://github.com/oversell/oversell")
	run.Tool.Driver.WithVersion(r.Shop).WithRules(sarifRules)
	invocation := sarif.NewInvocation().WithExecutionSuccessful(r.Unfinished == "" && len(r.With(result.Error)) == 0)
	run.AddInvocation(invocation)
	if r.Shard != "" { // each shard uploads a file, and code scanning keeps one file per category
		run.WithAutomationDetails(sarif.NewRunAutomationDetails().WithID("oversell/" + r.Shard))
	}
	for _, c := range r.Checks {
		switch {
		case c.Status == result.Holds:
		case c.Status == result.Broken && c.File != "":
			run.AddResult(sarifBreak(r, c))
		default: // code scanning rejects the whole file if a result has no location
			level := "error"
			if c.Status == result.Inconclusive || c.Status == result.Broken && !r.Fails(c) {
				level = "warning"
			}
			n := sarif.NewNotification().WithLevel(level).WithMessage(sarif.NewTextMessage(fmt.Sprintf("%s: %s: %s", c.Name, c.Status, c.Why)))
			if c.File != "" {
				n.AddLocation(place(c.File, c.Line, ""))
			}
			invocation.AddToolExecutionNotification(n)
		}
	}
	return sarif.NewReport().AddRun(run)
}

// sarifBreak returns a break as a result. The steps of the breaking schedule are its code flow.
func sarifBreak(r result.Result, c result.Check) *sarif.Result {
	rule := ruleOf(c)
	id := *sarifRules[rule].ID
	one := sarif.NewRuleResult(id).WithRuleIndex(rule).WithLevel("error").
		WithMessage(sarif.NewTextMessage(c.Why + ". Replay: " + replayOf(c))).AddLocation(place(c.File, c.Line, ""))
	if !r.Fails(c) {
		one.WithLevel("warning")
	}
	switch c.Change {
	case result.New:
		one.WithBaselineState("new")
	case result.Before:
		one.WithBaselineState("unchanged")
	}
	hash := sha256.Sum256([]byte(c.Name + "\n" + id))
	one.WithPartialFingerprints(map[string]string{"oversell/v1": hex.EncodeToString(hash[:16])})
	for i, s := range c.Sources {
		one.AddRelatedLocation(place(s.File, s.Line, s.Text).WithID(i + 1))
	}
	if c.Witness == nil {
		return one
	}
	flow := sarif.NewThreadFlow()
	for n, s := range c.Witness.Steps {
		flow.AddLocation(sarif.NewThreadFlowLocation().WithLocation(place(c.File, c.Line, fmt.Sprintf("step %d, buyer %d: %s", n+1, s.Buyer, s.Line()))))
	}
	if len(flow.Locations) > 0 {
		one.AddCodeFlow(sarif.NewCodeFlow().AddThreadFlow(flow))
	}
	return one
}

func replayOf(c result.Check) string {
	if c.Witness != nil {
		return c.Witness.Command
	}
	return c.Command
}

func place(file string, line int, text string) *sarif.Location {
	l := sarif.NewLocationWithPhysicalLocation(sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewSimpleArtifactLocation((&url.URL{Path: file}).EscapedPath())).
		WithRegion(sarif.NewRegion().WithStartLine(max(line, 1))))
	if text != "" {
		l.WithMessage(sarif.NewTextMessage(text))
	}
	return l
}

// cut returns a file that is small enough for code scanning. It first leaves out the code flows, then the last
// results.
func cut(log *sarif.Report, results, packed int) (f File, err error) {
	run := log.Runs[0]
	all, flows := len(run.Results), false
	if all > results {
		run.Results = run.Results[:results]
	}
	for {
		var text bytes.Buffer
		if err := report.JSON(&text, log); err != nil {
			return f, err
		}
		f.Text = text.Bytes()
		size, err := gzipped(f.Text)
		switch {
		case err != nil:
			return f, err
		case size <= packed || len(run.Results) == 0:
			f.Cut = cutNote(flows, len(run.Results), all)
			return f, nil
		case !flows:
			flows = true
			for _, one := range run.Results {
				one.CodeFlows = []*sarif.CodeFlow{}
			}
		default:
			run.Results = run.Results[:len(run.Results)/2]
		}
	}
}

func cutNote(flows bool, kept, all int) string {
	limits := fmt.Sprintf("code scanning accepts %d results and %d MiB compressed", mostResults, mostPacked>>20)
	switch {
	case kept < all:
		return fmt.Sprintf("the first %d of %d breaks: %s; result.json has all", kept, all, limits)
	case flows:
		return "the steps of the witnesses are left out: " + limits + "; result.json has them"
	}
	return ""
}

func gzipped(text []byte) (int, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		return 0, err
	}
	err := w.Close()
	return packed.Len(), err
}
