package explore

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/plural"
)

// The explorer may lose control of a run of a program under test, for example after an unexpected command. Such a run
// is void: it proves nothing, is discarded, and runs again.
const (
	voidTries   = 3  // runs of a branch (an untried choice); if all are void, the search gives it up
	shownTries  = 5  // replays of a violation that the report will show
	voidAtFirst = 10 // if this many runs are void before the first good one, the search ends
	voidInARow  = 50 // if this many runs in a row are void, the search ends
	mostReasons = 3  // maximum number of reasons in the error message
)

// Voided counts the void runs with equal reasons and details, except for ids in the details.
type Voided struct {
	Why     string `json:"why"`
	Details string `json:"details,omitempty"` // the command and its buyer; "" after the first mostVoided
	Runs    int    `json:"runs"`
}

// mostVoided is the maximum number of entries with details.
const mostVoided = 20

// isVoid reports whether the error means a void run, so that the caller may run it again.
func isVoid(err error) bool {
	_, is := schedule.AsVoid(err)
	return is
}

// retry puts the branch of a void run back into the frontier. It returns false if the branch must be given up.
func (w *walk) retry(sure bool) bool {
	if w.voids++; sure && w.voids >= voidTries {
		return false
	}
	w.frontier.push(w.cost, w.branch)
	return true
}

// A voids counts the void runs of a search, and detects when there are too many.
type voids struct {
	result *Result
	sure   bool // at least one run was not void
	inARow int
	// forgiven is set after the search. From then on, any number of void replays is permitted.
	forgiven bool
}

// good records a run that was not void.
func (v *voids) good() { v.sure, v.inARow = true, 0 }

// count counts a void run. It returns an error, which ends the search, if there are too many.
func (v *voids) count(err error) error {
	void, _ := schedule.AsVoid(err)
	if void.Missed {
		return nil
	}
	r := v.result
	r.Void++
	r.Voided = counted(r.Voided, void)
	v.inARow++
	if r.Complete {
		r.Complete, r.Whole = false, false
	}
	switch {
	case v.forgiven:
	case v.sure && v.inARow >= voidInARow:
		return fmt.Errorf("%w: %d runs in a row were discarded, of all discarded runs %s; last: %v", ErrHarness, v.inARow, reasons(r.Voids()), err)
	case !v.sure && r.Void >= voidAtFirst:
		return fmt.Errorf("%w: the first %d runs were all discarded: %s; last: %v", ErrHarness, r.Void, reasons(r.Voids()), err)
	}
	return nil
}

// counted adds a void run to the entry with the same reason and details.
func counted(all []Voided, v schedule.Void) []Voided {
	why, details := v.Why, strings.Join(strings.Fields(v.Details), " ")
	alike := func(details string) int {
		return slices.IndexFunc(all, func(one Voided) bool { return one.Why == why && withoutIDs(one.Details) == withoutIDs(details) })
	}
	at := alike(details)
	if at < 0 && len(all) >= mostVoided {
		details = ""
		at = alike(details)
	}
	if at < 0 {
		return append(all, Voided{why, details, 1})
	}
	all[at].Runs++
	return all
}

// id matches a value that may differ between runs: a UUID, a hexadecimal number or a number. It also matches a number
// after a lower-case word, such as "buyer 1", which withoutIDs leaves unchanged.
var id = regexp.MustCompile(`[a-z] \d+\b|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b[0-9a-fA-F]{16,}\b|\d+`)

// withoutIDs replaces the ids in a text. Texts that differ only in ids become equal.
func withoutIDs(text string) string {
	return id.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Contains(found, " ") {
			return found
		}
		return "#"
	})
}

// Voids returns the number of void runs by reason; nil if there were none.
func (r Result) Voids() (runs map[string]int) {
	for _, v := range r.Voided {
		if runs == nil {
			runs = map[string]int{}
		}
		runs[v.Why] += v.Runs
	}
	return runs
}

func commonest(all []Voided) []Voided {
	return slices.SortedStableFunc(slices.Values(all), func(a, b Voided) int { return b.Runs - a.Runs })
}

// String returns the line for a report.
func (v Voided) String() string {
	text := plural.Count(v.Runs, "run") + " discarded: " + v.Why
	if v.Details != "" {
		text += ": " + v.Details
	}
	return text
}

// voidBranch counts a void run. Then it puts the run's branch back into the frontier, or gives the branch up.
func (s *search) voidBranch(t execution, err error) error {
	s.violations.doubt()
	if w, is := t.(*walk); is && !w.retry(s.voids.sure) {
		s.result.Lost++
	}
	return s.voids.count(err)
}

// reasons lists the reasons of void runs, the most frequent first. If there are several, each has its count.
func reasons(voids map[string]int) string {
	names := slices.SortedFunc(maps.Keys(voids), func(a, b string) int {
		return cmp.Or(voids[b]-voids[a], strings.Compare(a, b))
	})
	if len(names) == 1 {
		return names[0]
	}
	var all []string
	for i, name := range names {
		if i == mostReasons {
			all = append(all, "and others")
			break
		}
		all = append(all, fmt.Sprintf("%d: %s", voids[name], name))
	}
	return strings.Join(all, ", ")
}
