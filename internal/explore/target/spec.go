package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/rows"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/witness"
)

// A Spec describes an exploration.
type Spec struct {
	App     *app.App
	Servers *app.Servers // used only by this exploration; the caller closes them
	Events  []schedule.Event
	// Tries is the maximum number of futile retries in a row while another buyer could continue: 1 to MaxTries; 0 means
	// DefaultTries. A futile retry repeats the same commands with the same answers.
	Tries int
	// Overlap runs an autocommitted statement as two steps, execution and commit, if another buyer's command could notice
	// the difference.
	Overlap bool
}

// Limits of Spec.Tries.
const (
	DefaultTries = 4
	MaxTries     = 100
)

// A Check describes the run of each buyer alone, one command at a time. It shows mistakes in oversell.yaml.
type Check struct {
	Servers string         `json:"servers"`
	Buyers  []Alone        `json:"buyers"`
	Pollers []gates.Poller `json:"pollers,omitempty"` // commands that the program sent while it served no buyer
	Ignore  []string       `json:"ignore,omitempty"`  // the present entries of `ignore` in oversell.yaml, and new ones for these pollers; nil without pollers

	Orders     int      `json:"orders,omitempty"`     // number of serial runs (all or some buyers, one after the other); 0: the rules of `never` judge the runs
	Uncompared []string `json:"uncompared,omitempty"` // where a run may differ from the serial runs, see explore.Report
	Unmatched  []string `json:"-"`                    // entries of `except` that match nothing here, since they belong to other requests of the scan
}

// Alone describes a run with only one buyer.
type Alone struct {
	Buyer    int          `json:"buyer"`
	Request  string       `json:"request"`
	Answer   string       `json:"answer"` // "": the buyer got none
	Sold     bool         `json:"sold"`
	TookMS   float64      `json:"took_ms"`
	Commands []gates.Seen `json:"commands"`
	Passed   []string     `json:"passed"`            // commands that no gate holds
	Ignored  []string     `json:"ignored,omitempty"` // commands that oversell.yaml ignores, without their values
	Hidden   []string     `json:"hidden,omitempty"`  // ignored commands that use data of a step or a rule, each with the reason
	Varies   []string     `json:"varies,omitempty"`  // commands with values that differ between two runs, for a reason that is unknown

	// Meets is the number of this buyer's commands whose order relative to another buyer's may matter. It is 0 if the
	// search does not use it, because the program is short or has no PostgreSQL.
	Meets  int    `json:"meets,omitempty"`
	Why    string `json:"why,omitempty"` // problem; "" if there is none
	Status int    `json:"-"`             // 0: no answer
	Hides  string `json:"-"`             // an entry of Hidden that writes a table that a rule reads; "": none
	AtOnce int    `json:"-"`             // maximum number of its commands that could be at the servers at once
	Races  string `json:"-"`             // a rule that this buyer breaks alone, with several commands at once; "": none

	answers []exchange
	ignored []gates.Template // the commands of Ignored
	used    []rows.Used
	doubted *witness.Finding // a rule with :sold or :failed that this buyer breaks alone; it may hold after all buyers; nil: none
}

// An exchange is a command and its answer, in full. Names replace the values that differ between runs.
type exchange struct {
	command, server, answer string
	usage                   usage
}

// A usage lists the resources that a command uses.
type usage struct {
	reads, locks, writes []Resource // read without a lock; locked; written
	related              []Resource // read because of a foreign key, with shared locks
	words                []string   // the words of a Redis command, of which only the server knows which are keys
	changes              bool       // the Redis command may change its keys
	database             string     // number of the Redis database, as in "db 1"; any other text means the first one
}

// A Resource is a table, the named locks of a database, or a Redis key. The name * stands for all of a server.
type Resource struct{ Server, Name string }

const anything = "*"

// Covers reports whether the two resources may be the same one.
func (r Resource) Covers(other Resource) bool {
	return r.Server == other.Server && (r.Name == other.Name || r.Name == anything || other.Name == anything)
}

// String returns the resource as text for the user.
func (r Resource) String() string {
	switch {
	case r.Server == "redis" && r.Name == "*":
		return "any key of redis"
	case r.Server == "redis":
		return "redis key " + r.Name
	case r.Name == "*":
		return "any table of " + r.Server
	}
	return r.Name
}

// A Footprint lists the resources that a buyer used when it ran alone. No list contains a resource twice.
type Footprint struct {
	Reads  []Resource // including rows that the server reads for a foreign key
	Locks  []Resource // including locks that a command only tries to take, as with NOWAIT or SKIP LOCKED
	Writes []Resource
	Naive  []Resource // read without a lock and then written, so another buyer may change the data in between
}

// Empty reports whether the buyer used nothing.
func (f Footprint) Empty() bool { return len(f.Reads)+len(f.Locks)+len(f.Writes) == 0 }

// Err returns why the program cannot be explored, in one line; nil if it can.
func (c Check) Err() error {
	for _, a := range c.Buyers {
		switch {
		case a.Hides != "":
			return fmt.Errorf("ignore: with buyer %d alone, %s, so it must be a step; write a narrower entry in `ignore`", a.Buyer, a.Hides)
		case a.Why != "":
			return fmt.Errorf("buyer %d alone: %s", a.Buyer, a.Why)
		case len(a.Commands) == 0:
			return fmt.Errorf("buyer %d alone: no command came to a gate: the program goes around the gates (a unix socket, another address or port), or this request needs no server; --app-check shows all commands", a.Buyer)
		}
	}
	if !slices.ContainsFunc(c.Buyers, func(a Alone) bool { return a.Sold }) {
		return fmt.Errorf("no buyer alone is told of a sale, so nothing can be sold twice: %s; if one of these answers is a sale, name it in `sold:` of the file; else give the item stock in `reset:`, or have `buyer:` ask for another one", c.answers())
	}
	return nil
}

func (c Check) commands() (all []gates.Seen) {
	for _, a := range c.Buyers {
		all = append(all, a.Commands...)
	}
	return all
}

// answers lists the answer to each buyer alone. It names buyers with the same answer together.
func (c Check) answers() string {
	told := map[string][]int{}
	var all []string // in the order of the buyers
	for _, a := range c.Buyers {
		if told[a.Answer] == nil {
			all = append(all, a.Answer)
		}
		told[a.Answer] = append(told[a.Answer], a.Buyer)
	}
	for n, answer := range all {
		all[n] = naming.Buyers(told[answer]) + ": " + answer
	}
	return strings.Join(all, ", ")
}
