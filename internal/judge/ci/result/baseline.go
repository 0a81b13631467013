package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A Change compares a check with the baseline.
type Change string

// The changes.
const (
	New      Change = "new"      // breaks; did not break in the baseline
	Before   Change = "before"   // breaks as in the baseline
	Fixed    Change = "fixed"    // broke in the baseline; its breaking schedule ran without a break, and the search is complete
	Unproven Change = "unproven" // broke in the baseline; did not break now, but that does not prove a fix
	Same     Change = "same"     // holds, as in the baseline
	Added    Change = "added"    // holds; is not in the baseline
)

// A Baseline is the result of another branch, with which a run is compared.
type Baseline struct {
	Files   []string  `json:"files"`
	Commit  string    `json:"commit,omitempty"`
	Started time.Time `json:"started"`
	Ignored string    `json:"ignored,omitempty"` // why the baseline was not used; "" if it was
	Gone    []string  `json:"gone,omitempty"`    // checks of the baseline that this run does not contain

	checks []Check
}

// ReadBaseline reads result.json files and joins their checks. It never returns nil. If a file cannot be used,
// the baseline contains no checks, and its field Ignored says why in one line.
func ReadBaseline(files []string) *Baseline {
	b := &Baseline{Files: files}
	for _, file := range files {
		r, err := Read(file)
		if err != nil {
			b.Ignored, b.checks = err.Error(), nil
			return b
		}
		b.Commit, b.Started = r.Commit, r.Started
		b.checks = append(b.checks, r.Checks...)
	}
	return b
}

// Read reads a result.json. Its error text is one line.
func Read(file string) (*Result, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var version struct{ Schema *int }
	if err := json.Unmarshal(text, &version); err != nil || version.Schema == nil {
		return nil, fmt.Errorf("%s is not a result.json of shop ci", file)
	}
	if *version.Schema != Schema {
		return nil, fmt.Errorf("%s has schema %d, and this program reads schema %d", file, *version.Schema, Schema)
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, errors.New(file + ": " + strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return r, nil
}

// Check returns the baseline's check with a name; nil if there is none.
func (b *Baseline) Check(name string) *Check {
	if b == nil {
		return nil
	}
	if i := slices.IndexFunc(b.checks, func(c Check) bool { return c.Name == name }); i >= 0 {
		return &b.checks[i]
	}
	return nil
}

// Broke reports whether a check broke in the baseline.
func (b *Baseline) Broke(name string) bool {
	c := b.Check(name)
	return c != nil && c.Status == Broken
}

// A Replay contains the result of the baseline's breaking schedule in this run.
type Replay struct {
	Holds bool   // the schedule ran to its end and did not break anything
	How   string // a sentence without its full stop
}

// Compare sets the change of a check. It uses `replay` only if the check broke in the baseline and does not
// break now.
func (b *Baseline) Compare(c *Check, replay Replay) {
	if b == nil || b.Ignored != "" {
		return
	}
	old := b.Check(c.Name)
	broke := old != nil && old.Status == Broken
	switch {
	case c.Status == Broken && broke && sameRule(*old, *c):
		c.Change, c.ChangeWhy = Before, "the baseline breaks, too"
	case c.Status == Broken && broke:
		c.Change, c.ChangeWhy = New, "the baseline breaks another rule: "+old.broken()
	case c.Status == Broken && old == nil:
		c.Change, c.ChangeWhy = New, "the baseline does not have this check"
	case c.Status == Broken && old.Status != Holds:
		c.Change, c.ChangeWhy = New, fmt.Sprintf("the baseline was %s: %s", old.Status, old.Why)
	case c.Status == Broken:
		c.Change, c.ChangeWhy = New, "the baseline holds"
	case broke && c.Status == Holds && c.Complete && replay.Holds:
		c.Change, c.ChangeWhy = Fixed, replay.How
	case broke && c.Status == Holds && !c.Complete:
		c.Change, c.ChangeWhy = Unproven, "nothing broke, but the search is not complete"
	case broke && c.Status == Holds:
		c.Change, c.ChangeWhy = Unproven, "nothing broke, but the old witness proves no fix: "+replay.How
	case broke:
		c.Change, c.ChangeWhy = Unproven, fmt.Sprintf("the baseline breaks, and this run is %s", c.Status)
	case c.Status == Holds && old == nil:
		c.Change = Added
	case c.Status == Holds && old.Status == Holds:
		c.Change = Same
	}
}

// Missing stores the names of the baseline's checks that are not in `checks`.
func (b *Baseline) Missing(checks []Check) {
	if b == nil {
		return
	}
	for _, old := range b.checks {
		if !slices.ContainsFunc(checks, func(c Check) bool { return c.Name == old.Name }) {
			b.Gone = append(b.Gone, old.Name)
		}
	}
}

// sameRule reports whether two breaks share a broken rule, or have the same verdict and both have no broken rules.
func sameRule(a, b Check) bool {
	rulesA, rulesB := a.rules(), b.rules()
	if len(rulesA) == 0 && len(rulesB) == 0 {
		return a.Verdict == b.Verdict
	}
	return slices.ContainsFunc(rulesA, func(rule string) bool { return slices.Contains(rulesB, rule) })
}

func (c Check) rules() []string {
	if c.Witness == nil {
		return nil
	}
	return c.Witness.Rules
}

func (c Check) broken() string {
	if rules := c.rules(); len(rules) > 0 {
		return rules[0]
	}
	return fmt.Sprintf("%s: %s", c.Verdict, c.Why)
}
