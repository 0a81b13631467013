package format

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"

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

// sarif is SARIF 2.1.0 for code scanning. The types below are the part of the standard that the file
// uses (OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"). The library go-sarif
// would add half a megabyte to the binary, and a validator of JSON schemas, which has had no release since 2019.
func sarif() Format {
	return Format{What: "SARIF, for code scanning", Files: func(r result.Result) ([]File, error) {
		file, err := cut(sarifOf(r), mostResults, mostPacked)
		file.Name = sarifName
		return []File{file}, err
	}}
}

type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		Category    *sarifCategory    `json:"automationDetails,omitempty"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
		Full  sarifText `json:"fullDescription"`
		Help  sarifText `json:"help"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifCategory struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Baseline     string            `json:"baselineState,omitempty"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		CodeFlows    []sarifCodeFlow   `json:"codeFlows,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		ID       *int           `json:"id,omitempty"`
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifCodeFlow struct {
		ThreadFlows []sarifThreadFlow `json:"threadFlows"`
	}
	sarifThreadFlow struct {
		Locations []sarifStep `json:"locations"`
	}
	sarifStep struct {
		Location sarifLocation `json:"location"`
	}
)

// sarifRules are the kinds of results.
var sarifRules = []sarifRule{
	{
		"oversell/rule",
		sarifText{"A schedule breaks a rule of never"},
		sarifText{"In one order of the buyers' commands, a query of `never` returns rows, for example because a unit was sold twice."},
		sarifText{"Replay the witness with the command in the message. Then make the check and the write one step: a conditional UPDATE, SELECT ... FOR UPDATE, or a lock that survives its lease."},
	},
	{
		"oversell/answer",
		sarifText{"A schedule gives a buyer a wrong answer"},
		sarifText{"In one order of the buyers' commands, a buyer gets an error or no answer, although every server is healthy."},
		sarifText{"Replay the witness with the command in the message. A deadlock or a timeout usually needs one order of locks, or a retry."},
	},
}

// ruleOf returns the index in sarifRules for a break.
func ruleOf(c result.Check) int {
	if c.Witness == nil || len(c.Witness.Rules) > 0 {
		return 0
	}
	return 1
}

// sarifOf returns the breaks of programs as results. Other checks that do not hold are notifications.
func sarifOf(r result.Result) sarifLog {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "oversell", Version: r.Shop, InformationURI: "https://github.com/oversell/oversell", Rules: sarifRules}},
		Invocations: []sarifInvocation{{Successful: r.Unfinished == "" && len(r.With(result.Error)) == 0}},
		Results:     []sarifResult{},
	}
	if r.Shard != "" { // each shard uploads a file, and code scanning keeps one per category
		run.Category = &sarifCategory{"oversell/" + r.Shard}
	}
	for _, c := range r.Checks {
		switch {
		case c.Status == result.Holds:
		case c.Status == result.Broken && c.File != "":
			run.Results = append(run.Results, sarifBreak(r, c))
		default: // code scanning rejects a file with a result that has no place
			level := "error"
			if c.Status == result.Inconclusive || c.Status == result.Broken && !r.Fails(c) {
				level = "warning"
			}
			n := sarifNotification{Level: level, Message: sarifText{fmt.Sprintf("%s: %s: %s", c.Name, c.Status, c.Why)}}
			if c.File != "" {
				n.Locations = []sarifLocation{place(c.File, c.Line, "")}
			}
			run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, n)
		}
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

// sarifBreak returns a break as a result, with its witness as a code flow.
func sarifBreak(r result.Result, c result.Check) sarifResult {
	rule := ruleOf(c)
	one := sarifResult{RuleID: sarifRules[rule].ID, RuleIndex: rule, Level: "error", Message: sarifText{c.Why + ". Replay: " + replayOf(c)}, Locations: []sarifLocation{place(c.File, c.Line, "")}}
	if !r.Fails(c) {
		one.Level = "warning"
	}
	switch c.Change {
	case result.New:
		one.Baseline = "new"
	case result.Before:
		one.Baseline = "unchanged"
	}
	hash := sha256.Sum256([]byte(c.Name + "\n" + one.RuleID))
	one.Fingerprints = map[string]string{"oversell/v1": hex.EncodeToString(hash[:16])}
	for i, s := range c.Sources {
		related := place(s.File, s.Line, s.Text)
		related.ID = new(i + 1)
		one.Related = append(one.Related, related)
	}
	if c.Witness == nil {
		return one
	}
	var flow sarifThreadFlow
	for n, s := range c.Witness.Steps {
		flow.Locations = append(flow.Locations, sarifStep{place(c.File, c.Line, fmt.Sprintf("step %d, buyer %d: %s", n+1, s.Buyer, s.Line()))})
	}
	if len(flow.Locations) > 0 {
		one.CodeFlows = []sarifCodeFlow{{[]sarifThreadFlow{flow}}}
	}
	return one
}

// replayOf returns the command that shows a break again.
func replayOf(c result.Check) string {
	if c.Witness != nil {
		return c.Witness.Command
	}
	return c.Command
}

// place returns a line of a file.
func place(file string, line int, text string) sarifLocation {
	l := sarifLocation{Physical: &sarifPhysical{sarifArtifact{(&url.URL{Path: file}).EscapedPath()}, sarifRegion{max(line, 1)}}}
	if text != "" {
		l.Message = &sarifText{text}
	}
	return l
}

// cut returns a file that code scanning accepts. It leaves out the code flows first, then the last
// results.
func cut(log sarifLog, results, packed int) (f File, err error) {
	run := &log.Runs[0]
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
			run.Results = slices.Clone(run.Results)
			for i := range run.Results {
				run.Results[i].CodeFlows = nil
			}
		default:
			run.Results = run.Results[:len(run.Results)/2]
		}
	}
}

// cutNote says what cut has left out; "" if nothing.
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

// gzipped returns the size of a text after compression, in bytes.
func gzipped(text []byte) (int, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		return 0, err
	}
	err := w.Close()
	return packed.Len(), err
}
