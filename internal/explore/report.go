package explore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/plural"
)

// A Report is the result of a search, as printed by `shop explore --json`.
type Report struct {
	Strategy   string   `json:"strategy"`
	Engine     string   `json:"engine"`
	Server     string   `json:"server"` // the database's product and version
	Buyers     int      `json:"buyers"`
	Stock      int64    `json:"stock"`
	Units      int64    `json:"units"`                   // units per purchase; if buyers ask for different numbers, the number of the first
	Mixed      Units    `json:"units_in_turn,omitempty"` // units per purchase, as a list that repeats, if buyers ask for different numbers
	Parts      int64    `json:"parts"`                   // number of rows into which the stock was divided; 0: it was in the product's own row
	Events     []Event  `json:"events"`
	MaxEvents  *int     `json:"max_events"`        // maximum per schedule; null: no limit
	Bound      *int     `json:"bound"`             // maximum number of preemptions (switches away from a buyer that could continue) per schedule; null: no limit
	Merged     bool     `json:"merged"`            // equal states were merged
	Runs       int      `json:"runs"`              // schedules that were run; with merged states, the results of the others follow from these
	States     int      `json:"states"`            // number of states, if states were merged
	Digest     string   `json:"digest"`            // hash of the runs and their verdicts; equal for two searches that ran the same schedules in the same order
	Shared     bool     `json:"shared"`            // all buyers in one process
	OneKey     bool     `json:"one_key,omitempty"` // all purchases had the same Idempotency-Key header
	Before     Front    `json:"before,omitempty"`  // the part of the shop that runs before the strategy
	Explored   int      `json:"explored"`
	Total      *int     `json:"total"` // null: unknown, since the search is not complete
	Complete   bool     `json:"complete"`
	Never      []Event  `json:"never"`       // events that could not happen at any step
	Cut        int      `json:"cut"`         // schedules that ended early because they had too many steps
	Alike      bool     `json:"alike"`       // only the lowest-numbered buyer that had not started could start (symmetry reduction)
	NodesAlike bool     `json:"nodes_alike"` // of a lock's Redis nodes without a command, only the first was asked (symmetry reduction)
	Within     *int     `json:"within"`      // all schedules with up to this many preemptions were explored; null: unknown
	Overlap    bool     `json:"overlap"`     // strategy: pairs of commands were sent to one server at once; program: statements were held before their commit
	Overlapped int      `json:"overlapped"`  // number of schedules with such a pair or a held statement
	Missed     int      `json:"missed"`      // results of such pairs that the search could not reach again
	Violations int      `json:"violations"`
	Seconds    float64  `json:"seconds"`
	PerSecond  float64  `json:"per_second"`
	Witness    *Witness `json:"witness"`

	// The following fields apply to a program under test. Strategy is then its name, and Engine is "app".
	Void    int            `json:"void,omitempty"`      // discarded runs, of which the explorer lost control; not in the other counts
	Voids   map[string]int `json:"voids,omitempty"`     // number of discarded runs, by reason
	Voided  []Voided       `json:"void_runs,omitempty"` // number of discarded runs, by reason and details, the most frequent first
	Late    bool           `json:"late,omitempty"`      // a timer of the program sent a command at different steps; schedules were left out
	Lost    int            `json:"lost,omitempty"`      // branches of the search that were given up, since all their runs were discarded
	Dropped int            `json:"dropped,omitempty"`   // violations that did not break again in a replay, and are not counted
	// Unconfirmed counts violations that were never replayed. It is 0 if any replay broke. Violations excludes them.
	Unconfirmed int  `json:"unconfirmed,omitempty"`
	Reduced     bool `json:"reduced,omitempty"` // of schedules that differ only in the order of commuting commands, one was run
	Tries       *int `json:"tries,omitempty"`   // schedules with more futile retries in a row were left out; null: none were left out
	// Answers counts the buyers of all schedules by their answer: an HTTP status, "no answer" or "crashed".
	Answers map[string]int `json:"answers,omitempty"`
	// Compound lists commands that contain several statements and ran as one step, although another buyer's command could
	// come between the statements.
	Compound []string `json:"compound,omitempty"`
	// Divided lists commands that read and write in one step, although another buyer's write could come in between.
	Divided []string `json:"divided,omitempty"`
	// Holdable reports that --overlap would run one of the commands in Divided as two steps.
	Holdable bool `json:"-"`
	// Kinds counts the violations by verdict.
	Kinds map[verdict.Verdict]int `json:"kinds,omitempty"`
	// Ignored lists commands that oversell.yaml ignores, although they use data of a step or a rule, each with the reason.
	// If there are any, the search is not complete.
	Ignored []string `json:"ignored,omitempty"`
	Ignore  []string `json:"ignore,omitempty"` // entries of `ignore` in oversell.yaml
	// Uncompared lists columns, and places in the answers, that the search does not compare with the serial runs (one
	// buyer after the other). Either oversell.yaml excepts them, or they differed between two serial runs in the same
	// order.
	Uncompared []string `json:"uncompared,omitempty"`
	// Pauses lists commands after which each pause of the program was too short for a move of another buyer. So the search
	// explored no such move.
	Pauses []string `json:"pauses,omitempty"`
	// Unforeseen is one line that says why two commands do not commute, although the search assumed that they do; "" if
	// there are none. If it is set, the search is not complete.
	Unforeseen    string `json:"unforeseen,omitempty"`
	Keeps         bool   `json:"keeps,omitempty"`           // the programs were restarted before each replay, since a replay without a restart had diverged
	GaveUp        string `json:"gave_up,omitempty"`         // one line: a buyer's action after its last retry; it makes the search incomplete; "": none
	Racing        string `json:"racing,omitempty"`          // one line about a buyer that breaks a rule even when it runs alone, because its own commands race
	Polls         bool   `json:"polls,omitempty"`           // the program has sent commands while it served no buyer
	Stray         string `json:"stray,omitempty"`           // one line: a lock was released on a connection that does not hold it, or taken through a pooler that assigns connections per transaction
	Namesakes     string `json:"namesakes,omitempty"`       // host name and process id that two buyers have both sent, as if they were one process
	ShortAccepted bool   `json:"pauses_accepted,omitempty"` // oversell.yaml has `pauses: accepted`, so Pauses does not matter
	Atomic        bool   `json:"atomic_accepted,omitempty"` // oversell.yaml has `atomic: accepted`, so Divided does not matter
	// AnyOrder reports that `answers: accepted` let the search leave out orders of one buyer's parallel commands.
	AnyOrder bool `json:"answers_accepted,omitempty"`

	Foreign        int      `json:"foreign_unlocks"` // schedules in which a buyer released another buyer's lock
	ForeignWitness *Witness `json:"foreign_unlock_witness"`
	Early          int      `json:"early_sold_out"` // strategy: schedules that told a buyer "sold out", although a later buyer could buy; program: those that refused a buyer that a serial run serves

	again          string // the command that repeats the search
	split          bool   // copy of Config.Split
	exploredWithin int
	first          bool // the search ended at the first violation
	exhausted      bool // no choice was left to explore
}

// AppEngine is Report.Engine for a program under test.
const AppEngine = "app"

// NewReport makes the report on result `r` of a search with configuration c.
func NewReport(c Config, r Result) Report {
	report := newReport(c, r)
	c.mode().origin(&report)
	return report
}

// newReport makes a report without the fields that mode.origin sets.
func newReport(c Config, r Result) Report {
	report := Report{
		Strategy: c.mode().name(), Buyers: c.Buyers, Stock: c.Stock, Units: c.Units.Of(1), Parts: c.Parts, Events: c.Events,
		Merged: r.Merged, Runs: r.Runs, States: r.States, Digest: r.Digest, Shared: c.Shared, OneKey: c.OneKey, Explored: r.Explored, Complete: r.Complete, Never: r.Never, Cut: r.Cut,
		Violations: r.Violations, Seconds: r.Seconds, Witness: r.Witness,
		Alike: c.Symmetry, NodesAlike: c.nodesAlike(), Overlap: c.Overlap || c.Split, Overlapped: r.Overlapped, Missed: r.Missed, exploredWithin: r.ExploredWithin,
		Void: r.Void, Voids: r.Voids(), Voided: commonest(r.Voided), Compound: r.Compound, Divided: r.Divided, Holdable: r.Holdable, Kinds: kinds(r.Verdicts), Ignored: r.Ignored, Ignore: c.Ignore, Uncompared: r.Uncompared, Pauses: r.Pauses, Unforeseen: r.Unforeseen, Keeps: r.Keeps, Namesakes: r.Namesakes, Stray: r.Stray, Polls: r.Polls, Racing: c.Racing, GaveUp: r.GaveUp, ShortAccepted: c.ShortPauses, Atomic: c.Atomic, AnyOrder: c.AnyOrder && r.Reduced && !c.Split && len(c.Events) == 0, Answers: r.Answers, Late: r.Late, Lost: r.Lost, Dropped: r.Dropped, Unconfirmed: r.Unconfirmed, Reduced: r.Reduced, exhausted: r.exhausted,
		Foreign: r.Foreign, ForeignWitness: r.ForeignWitness, Early: r.Early, first: c.First, split: c.Split,
	}
	if c.Units.Mixed() {
		report.Mixed = c.Units
	}
	if report.Events == nil {
		report.Events = []Event{}
	}
	if report.Never == nil {
		report.Never = []Event{}
	}
	if c.MaxEvents > 0 && c.MaxEvents < len(c.Events) {
		report.MaxEvents = &c.MaxEvents
	}
	if c.Bound >= 0 {
		report.Bound = &c.Bound
	}
	if r.Held {
		report.Tries = &c.Tries
	}
	if r.Within >= 0 {
		report.Within = &r.Within
	}
	if r.Complete && !c.Overlap {
		report.Total = &report.Explored
	}
	if r.Seconds > 0 {
		report.PerSecond = float64(r.Runs) / r.Seconds
	}
	return report
}

// Replay returns the shell command that replays a schedule of the search.
func (r Report) Replay(w *Witness) string { return r.again + " --replay " + w.Schedule }

// Replay returns the shell command that replays a schedule of a strategy. The flags, as text, come from engine.Flags.
func Replay(strategy, flags string, w *Witness) string {
	return command(strategy, flags) + " --replay " + w.Schedule
}

func command(strategy, flags string) string { return "shop explore " + strategy + flags }

// Extent says in one phrase how much was explored. "N of N" means that no schedule was left out.
func (r Report) Extent() string {
	text := plural.Count(r.Explored, "schedule")
	var notes []string
	if r.Alike {
		notes = append(notes, "buyers alike")
	}
	if r.NodesAlike {
		notes = append(notes, "nodes alike")
	}
	if r.Merged && r.Runs < r.Explored {
		notes = append(notes, plural.Count(r.Runs, "run"), "equal states merged")
	}
	if r.Reduced {
		notes = append(notes, "commuting commands in one order")
	}
	if r.split {
		notes = append(notes, fmt.Sprintf("in %d a statement was held inside the server while another ran", r.Overlapped))
	}
	if r.Tries != nil {
		notes = append(notes, fmt.Sprintf("at most %d failed tries in a row, --tries allows more", *r.Tries))
	}
	if notes != nil {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	whole := !r.Alike && !r.NodesAlike && r.MaxEvents == nil && r.Bound == nil
	switch {
	case r.Overlap && !r.split:
		text = fmt.Sprintf("explored %s, %d of them with commands released together in an order that the server decides: not all that can happen", text, r.Overlapped)
	case r.first && r.Violations > 0:
		return "explored " + text + ", up to the first that breaks" + r.voidRuns()
	case !r.Complete:
		text = "explored " + text
	case whole:
		text = fmt.Sprintf("explored %d of %s", r.Explored, text)
	default:
		text = "explored all " + text + r.limits(r.Bound)
	}
	if r.Complete && r.Bound != nil {
		text += fmt.Sprintf(" (bound %d)", *r.Bound)
	}
	return text + r.gaps()
}

// Notes returns the lines below the result: the answers, the gaps of the search, how often an unsteady witness broke,
// and the discarded runs.
func (r Report) Notes() (all []string) {
	if len(r.Answers) > 0 {
		var counts []string
		for _, kind := range slices.Sorted(maps.Keys(r.Answers)) {
			counts = append(counts, fmt.Sprintf("%s (%d)", kind, r.Answers[kind]))
		}
		all = append(all, "answers: "+strings.Join(counts, ", "))
	}
	if len(r.Compound) > 0 {
		all = append(all, "several statements in one command are one step, and no order inside it was explored: "+named(r.Compound))
	}
	if len(r.Pauses) > 0 {
		all = append(all, "after these commands the program's pause was too short for another buyer to move, so the choice of the next pooled connection was not explored: "+named(r.Pauses))
	}
	switch {
	case len(r.Divided) > 0 && (r.split || !r.Holdable):
		all = append(all, "a statement reads and writes in a way that --overlap cannot hold: a deadlock inside it, or a write between its parts, was not explored: "+named(r.Divided))
	case len(r.Divided) > 0:
		all = append(all, "a statement that reads and writes is one step, so no other write inside it was explored: "+named(r.Divided))
	}
	if len(r.Ignore) > 0 {
		all = append(all, "no steps, since the file ignores them: "+named(r.Ignore))
	}
	if len(r.Ignored) > 0 {
		all = append(all, "ignored although it matters: "+named(r.Ignored))
	}
	if r.AnyOrder {
		all = append(all, "the order of the answers to one buyer's parallel commands does not matter, says the file, so not all of these orders were explored")
	}
	if len(r.Uncompared) > 0 {
		all = append(all, "not compared with the buyers one after the other: "+named(r.Uncompared))
	}
	switch {
	case r.Early > 0 && r.Engine == AppEngine:
		all = append(all, fmt.Sprintf("refused while a unit was left: in %s a buyer was refused that is served one after the other; strict: true in the file makes that a break", plural.Count(r.Early, "schedule")))
	case r.Early > 0:
		all = append(all, fmt.Sprintf("in %s a buyer was told sold out while enough units were left: a later buyer could buy", plural.Count(r.Early, "schedule")))
	}
	if r.Stray != "" {
		all = append(all, "a lock of a session is released, or may be, on a connection that does not hold it: "+r.Stray)
	}
	if r.Racing != "" {
		all = append(all, r.Racing)
	}
	if r.Namesakes != "" {
		all = append(all, fmt.Sprintf("two buyers have sent %s, so a name made of both is not unique; without `hosts: same` their process ids differ", r.Namesakes))
	}
	if r.Keeps {
		all = append(all, "a replay did not fit, so the programs were started anew for each replay: they may keep something in their memory from run to run")
	}
	if r.Engine == AppEngine && r.Witness != nil && r.Witness.Again != "" {
		all = append(all, r.Witness.Again)
	}
	for _, v := range r.Voided {
		all = append(all, v.String())
	}
	return all
}

// kinds returns the counts of the verdicts that are violations; nil if there are none.
func kinds(all map[verdict.Verdict]int) map[verdict.Verdict]int {
	violations := maps.Clone(all)
	delete(violations, verdict.Holds)
	if len(violations) == 0 {
		return nil
	}
	return violations
}

// Broken returns the number of violations as text: "40 violations (19 broken, 21 failed)", or "1 violation".
func (r Report) Broken() string {
	text := plural.Count(r.Violations, "violation")
	if len(r.Kinds) < 2 {
		return text
	}
	var all []string
	for _, kind := range slices.SortedFunc(maps.Keys(r.Kinds), func(a, b verdict.Verdict) int {
		return cmp.Or(mildness(a)-mildness(b), cmp.Compare(a, b))
	}) {
		all = append(all, fmt.Sprintf("%d %s", r.Kinds[kind], kind))
	}
	return text + " (" + strings.Join(all, ", ") + ")"
}

// mostNamed is the maximum number of commands that the function named lists.
const mostNamed = 3

// named lists commands in one line: the first mostNamed, and the number of the others.
func named(commands []string) string {
	text := strings.Join(commands[:min(len(commands), mostNamed)], " | ")
	if more := len(commands) - mostNamed; more > 0 {
		text += fmt.Sprintf(" | and %d more", more)
	}
	return text
}

func (r Report) limits(bound *int) string {
	var limits []string
	if r.MaxEvents != nil {
		limits = append(limits, fmt.Sprintf("%d of the events", *r.MaxEvents))
	}
	if bound != nil {
		limits = append(limits, plural.Count(*bound, "preemption"))
	}
	if limits == nil {
		return ""
	}
	return " of at most " + strings.Join(limits, " and ")
}

// Empty reports whether events were requested and none could happen. Then the search proves nothing about events.
func (r Report) Empty() bool { return len(r.Events) > 0 && len(r.Never) == len(r.Events) }

// WhyEmpty returns the reason for Empty, as text without the name of the strategy or program.
func (r Report) WhyEmpty() string {
	text := "the result proves nothing: "
	for _, k := range schedule.Kinds() {
		if slices.Contains(r.Never, k.Event) {
			text += fmt.Sprintf("%s could not happen at any step, since %s; ", k.Event, cmp.Or(k.Without, "no buyer reached such a step"))
		}
	}
	return text + "without --events every schedule is explored"
}

// gaps describes which schedules were left out, and how far the search got.
func (r Report) gaps() (text string) {
	if len(r.Never) > 0 {
		var names []string
		for _, e := range r.Never {
			names = append(names, string(e))
		}
		text = " (could not happen at any step: " + strings.Join(names, ", ") + ")"
	}
	if !r.Complete && r.Within != nil {
		text += fmt.Sprintf(", among them all%s (%d)", r.limits(r.Within), r.exploredWithin)
	}
	if r.Missed > 0 {
		text += fmt.Sprintf("; %s of a concurrent pair did not occur again", plural.Count(r.Missed, "course"))
	}
	text += r.voidRuns()
	if r.Late {
		text += "; a timer of the program sent a command at different steps, and not every order with it was explored"
	}
	for _, why := range []string{r.Unforeseen, r.GaveUp} {
		if why != "" {
			text += "; " + why
		}
	}
	switch {
	case r.Cut > 0:
		text += fmt.Sprintf("; %d more had too many steps and were given up: not complete", r.Cut)
	case !r.Complete && r.exhausted:
		text += ": not complete"
	case !r.Complete:
		text += "; there are more: not complete"
	}
	return text
}

func (r Report) voidRuns() (text string) {
	if r.Void > 0 {
		text = fmt.Sprintf("; %s discarded (%s), not counted", plural.Count(r.Void, "run"), reasons(r.Voids))
	}
	if r.Lost > 0 {
		text += fmt.Sprintf("; %s given up, each discarded %d times", plural.Count(r.Lost, "schedule"), voidTries)
	}
	if r.Dropped > 0 {
		text += fmt.Sprintf("; %s did not run again, and is not counted", plural.Count(r.Dropped, "violation"))
		if r.Dropped > 1 {
			text = strings.TrimSuffix(text, "is not counted") + "are not counted"
		}
	}
	if r.Unconfirmed > 0 {
		text += fmt.Sprintf("; %s more not replayed and not counted", plural.Count(r.Unconfirmed, "violation"))
	}
	return text
}
