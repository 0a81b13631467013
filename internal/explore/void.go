package explore

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A run of a program that is not ours may be void: something came that nobody had waited for,
// so it shows nothing, and is tried again.
const (
	voidTries   = 3  // runs of one branch; it is given up when all of them were void
	shownTries  = 5  // of what is to be shown
	voidAtFirst = 10 // void runs and no other: nothing can be explored like this
	voidInARow  = 50
	mostReasons = 3 // in one line
)

// Voided counts the void runs with one reason and one set of details. Ids in the details may differ.
type Voided struct {
	Why     string `json:"why"`
	Details string `json:"details,omitempty"` // whose command it was, and which; "" where there are more than are kept apart
	Runs    int    `json:"runs"`
}

// mostVoided are kept apart.
const mostVoided = 20

// isVoid: the run may be tried again.
func (x *Explorer) isVoid(err error) bool {
	_, is := schedule.AsVoid(err)
	return is && x.config.Program != ""
}

// otherWay is the error that the same choices have led to others now. A program is taken for
// one that runs the same way unless something disturbs it; for our strategies it is a mistake
// of the explorer.
func (x *Explorer) otherWay(details string) error {
	const why = "the same schedule did not run the same way again"
	if x.config.Program != "" {
		return schedule.Void{Why: why, Details: details}
	}
	return fmt.Errorf("%w: %s: %s", ErrHarness, why, details)
}

// retry puts a branch back that was void; false where it has been void often enough.
func (w *walk) retry(sure bool) bool {
	if w.voids++; sure && w.voids >= voidTries {
		return false
	}
	w.frontier.push(w.cost, w.branch)
	return true
}

// A voids counts the runs that show nothing. It alone knows when there are too many.
type voids struct {
	result *Result
	sure   bool // a run was not void
	inARow int
	// forgiven reports that the search is over: replays may diverge, and no number of them is too many.
	forgiven bool
}

// good notes that a run was not void.
func (v *voids) good() { v.sure, v.inARow = true, 0 }

// count counts a void run. Its error ends the search: there are too many.
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
		return fmt.Errorf("%w: %d runs in a row were void, of all that were void %s; last: %v", ErrHarness, v.inARow, reasons(r.Voids()), err)
	case !v.sure && r.Void >= voidAtFirst:
		return fmt.Errorf("%w: the first %d runs were all void: %s; last: %v", ErrHarness, r.Void, reasons(r.Voids()), err)
	}
	return nil
}

// counted has one run more of those that are alike.
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

// id matches a value that may differ between runs: a UUID, a hexadecimal number or a number. A number
// after a lower-case word, such as "buyer 1", is the explorer's own and does not differ.
var id = regexp.MustCompile(`[a-z] \d+\b|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b[0-9a-fA-F]{16,}\b|\d+`)

// withoutIDs replaces the ids in a text, so that texts which differ only in ids become equal.
func withoutIDs(text string) string {
	return id.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Contains(found, " ") {
			return found
		}
		return "#"
	})
}

// Voids are how many void runs there were for each reason; nil: none.
func (r Result) Voids() (runs map[string]int) {
	for _, v := range r.Voided {
		if runs == nil {
			runs = map[string]int{}
		}
		runs[v.Why] += v.Runs
	}
	return runs
}

// commonest has those first that were seen in most runs.
func commonest(all []Voided) []Voided {
	return slices.SortedStableFunc(slices.Values(all), func(a, b Voided) int { return b.Runs - a.Runs })
}

// String is a line of a report.
func (v Voided) String() string {
	text := Count(v.Runs, "run") + " void: " + v.Why
	if v.Details != "" {
		text += ": " + v.Details
	}
	return text
}

// voidBranch counts a void run, and puts its branch back or gives it up.
func (s *search) voidBranch(t trip, err error) error {
	s.violations.doubt()
	if w, is := t.(*walk); is && !w.retry(s.voids.sure) {
		s.result.Lost++
	}
	return s.voids.count(err)
}

// reasons are those of void runs, the commonest first: the one there is, or each with its
// count.
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
