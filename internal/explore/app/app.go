// Package app reads oversell.yaml, the file that describes a program under test, in any language. It
// also queries the servers of that program, over its own connections without gates.
package app

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// An App is the description of a program under test, from its file.
type App struct {
	allowed string // host:port of a remote server that may be wiped; set by Guard
	Name    string // letters, digits, dots, underscores and hyphens
	Dir     string // value of `folder`, or the folder of oversell.yaml; commands run there, and paths are relative to it

	// Exactly one of these three is set.
	Run    []string // command lines of instances: one for all, or one per buyer
	Shared string   // the command line of one instance for all buyers
	Attach *Attach  // a program that runs already

	Ready       string        // a URL that answers below 500 when the program is ready; "": the program is ready when the buyers' port accepts connections
	ReadyWithin time.Duration // maximum time until the program is ready
	IdleWithin  time.Duration // maximum time until a buyer that runs alone is answered, and until the program is idle; time without a processor does not count
	Env         map[string]string
	OwnHome     bool // each instance has an empty HOME of its own
	SameHosts   bool // all instances see the same host name, and their process ids may be equal

	MySQL, Postgres, Redis *Server // nil: no gate for the server
	Local                  bool    // the command starts private servers and ends them
	Schema                 string  // a file with SQL for a private database, or a folder of such files; "" if none
	Migrate                string  // a command line that creates the tables on private servers, run once before the program; "" if none

	Buyers []Request
	// Requests are for a scan, which explores them in pairs. A file with Requests may have no Buyers.
	Requests []Request
	Scanned  bool     // LoadScan has read oversell.yaml, so an entry of Except may concern another pair of requests
	Before   []Before // sent by each buyer before each schedule, in this order
	Reset    Reset
	Sold     Answers          // answers that acknowledge a sale
	Refused  Answers          // answers that refuse a sale, although their status means a failure
	Pauses   bool             // the owner states that no buyer relies on its pooled connection in a pause too short to explore
	Atomic   bool             // the owner states that no other write comes between the read and the write of one statement
	AnyOrder bool             // the owner states that the order of the answers to one buyer's parallel commands does not matter
	Never    []string         // queries that must return no row
	Serial   bool             // each run must end like a serial order: the buyers one after the other
	Strict   bool             // a run is wrong if the program refuses a buyer that it serves in the serial order
	Except   []string         // allowed differences from the serial order
	Random   []*regexp.Regexp // values that differ between runs
	Ignore   Ignore           // commands of the program's background work
	Quiet    time.Duration    // how long the program must send nothing before the first buyer of a run; 0: no wait
	Watch    string           // a query whose first row is shown after each step; "" if none

	Guesses []string // keys with drafted values that the owner has not confirmed, each with its line: "run (line 3)"

	file     string
	lines    lines
	ruled    map[string]string // by table: the rule that RuleOn returns
	template *Request          // value of `buyer:`; nil if each buyer has its own request
	defaults Request           // header and body of `buyer:`, for each request of a list
	handed   []string          // names of the values that the requests of `before` provide
}

// Attach is a program that already runs, and connects to the gates in place of its servers.
type Attach struct {
	PID   int               `yaml:"pid"`   // process id of its first process
	Gates map[string]string `yaml:"gates"` // by protocol: the address at which the program looks for the server
}

// A Server is one of the user's servers.
type Server struct {
	Gate    string // host:port at which the program expects the server
	Address string // host:port of the server; differs from Gate only for a program that already runs
	URL     string // URL for the explorer's own connection; "": Address and the default user
}

// A Request is the request of a buyer.
type Request struct {
	Method, URL string
	Header      map[string]string
	Body        string
	Named       string // in a scan, a name that distinguishes requests with the same method and path; may be ""
}

// CheckOverlap returns an error in one line if the program cannot be explored with --overlap, which
// runs one statement as two steps.
func (a *App) CheckOverlap() error {
	if a.Run == nil {
		return errors.New("--overlap needs an instance for each buyer: write `run:` instead of `shared:` or `attach:`")
	}
	return nil
}

// A Reset restores the state in which each run begins.
type Reset struct {
	MySQL, Postgres []string
	Flush           bool // flush the Redis database whose number is in the URL
	Redis           [][]string
	HTTP            []Request // sent to each instance, after the statements
}

type file struct {
	Name        string            `yaml:"name"`
	Run         any               `yaml:"run"`
	Shared      string            `yaml:"shared"`
	Attach      *Attach           `yaml:"attach"`
	Ready       string            `yaml:"ready"`
	ReadyWithin string            `yaml:"ready-within"`
	IdleWithin  string            `yaml:"idle-within"`
	Env         map[string]string `yaml:"env"`
	Home        string            `yaml:"home"`
	Hosts       string            `yaml:"hosts"`
	MySQL       string            `yaml:"mysql"`
	Postgres    string            `yaml:"postgres"`
	Redis       string            `yaml:"redis"`
	Local       bool              `yaml:"local"`
	Schema      string            `yaml:"schema"`
	Migrate     string            `yaml:"migrate"`
	Folder      string            `yaml:"folder"`
	Buyers      any               `yaml:"buyers"`
	Buyer       any               `yaml:"buyer"`
	Requests    []any             `yaml:"requests"`
	Before      []any             `yaml:"before"`
	Reset       reset             `yaml:"reset"`
	Sold        any               `yaml:"sold"`
	Refused     any               `yaml:"refused"`
	Atomic      string            `yaml:"atomic"`
	Pauses      string            `yaml:"pauses"`
	Answers     string            `yaml:"answers"`
	Never       []string          `yaml:"never"`
	Rules       string            `yaml:"rules"`
	Strict      bool              `yaml:"strict"`
	Except      []string          `yaml:"except"`
	Watch       string            `yaml:"watch"`
	Random      []string          `yaml:"random"`
	Ignore      []string          `yaml:"ignore"`
	Quiet       string            `yaml:"quiet"`
}

type reset struct {
	SQL      []string `yaml:"sql"`
	MySQL    []string `yaml:"mysql"`
	Postgres []string `yaml:"postgres"`
	Redis    any      `yaml:"redis"`
	HTTP     any      `yaml:"http"`
}

// Load reads a file. The error is one line: the file, the line if known, and what to do.
func Load(path string) (*App, error) {
	a, err := read(path)
	if err == nil && len(a.Buyers) == 0 {
		err = fmt.Errorf("%s: %w", path, a.noBuyer())
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// LoadScan reads a file for a scan of its requests, which may have no buyers. The serial orders alone judge the
// runs of a scan: the rules of `never` and the answers of `sold` belong to the one request of `buyer`.
func LoadScan(path string) (*App, error) {
	a, err := read(path)
	if err != nil {
		return nil, err
	}
	a.Never, a.ruled, a.Serial, a.Scanned = nil, nil, true, true
	a.Sold, err = answersOf(anySuccess, "")
	return a, err
}

// anySuccess is the value of `sold` for a scan: its requests need not sell anything.
var anySuccess = []any{"2xx", "3xx"}

func read(path string) (*App, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--app: %w; "+seeExample, err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	a, err := parse(text, dir)
	if err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	a.file = path
	return a, nil
}

// parse reads a file's text. Its errors begin with ":LINE: " or ": ".
func parse(text []byte, dir string) (*App, error) {
	var f file
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New(": the file is empty; " + seeExample)
	}
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.Strict()); err != nil {
		return nil, wrong(err)
	}
	if err := unfilled(text); err != nil {
		return nil, err
	}
	if dir = filepath.Join(dir, f.Folder); filepath.IsAbs(f.Folder) {
		dir = f.Folder
	}
	a := &App{Dir: dir, Shared: f.Shared, Ready: f.Ready, Env: f.Env, Local: f.Local, Migrate: f.Migrate, Guesses: guesses(text), Never: f.Never, Watch: f.Watch, Atomic: f.Atomic != "", Pauses: f.Pauses != "", OwnHome: f.Home != "", SameHosts: f.Hosts != "", AnyOrder: f.Answers != ""}
	for _, one := range []struct{ key, value, only, meaning string }{
		{"pauses", f.Pauses, "accepted", "you vouch that no pausing buyer relies on its pooled connection; omit the key otherwise"},
		{"atomic", f.Atomic, "accepted", "you vouch that no other write comes between a statement's read and its write; omit the key otherwise"},
		{"answers", f.Answers, "accepted", "you vouch that the order of the answers to one buyer's parallel commands does not matter; omit the key otherwise"},
		{"home", f.Home, "own", "an empty HOME for each instance; omit the key for the HOME of shop itself"},
		{"hosts", f.Hosts, "same", "instances are hosts with one name and equal process ids; omit the key for processes of one host"},
	} {
		if one.value != "" && one.value != one.only {
			return nil, fmt.Errorf(": %s: %q; the only value is %s: %s", one.key, one.value, one.only, one.meaning)
		}
	}
	given := cmp.Or(f.Name, filepath.Base(dir))
	if a.Name = strings.TrimLeft(strings.Trim(notInNames.ReplaceAllString(given, "-"), "-."), "_-."); !schedule.ProgramName(a.Name) {
		return nil, fmt.Errorf(": %q gives the program no name; set name: to 1 to 64 ASCII letters, digits, dots, underscores and hyphens", given)
	}
	a.lines = linesOf(text)
	for _, step := range []func(*App, *file) error{
		(*App).program, (*App).servers, (*App).buyers, (*App).scanned, (*App).beforehand, (*App).resetting, (*App).places, (*App).answers, (*App).judged, (*App).queries, (*App).random, (*App).background,
	} {
		if err := step(a, &f); err != nil {
			return nil, fmt.Errorf(": %w", err)
		}
	}
	return a, nil
}

// seeExample is the advice for a file that cannot be repaired.
const seeExample = "shop explore --app-example prints a file to begin with"

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// listOf returns the strings of a value that is one string or a list.
func listOf(key string, v any) ([]string, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		var all []string
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("%s: %v is not text", key, e)
			}
			all = append(all, s)
		}
		return all, nil
	}
	return nil, fmt.Errorf("%s: expected text or a list of texts", key)
}

func (a *App) program(f *file) (err error) {
	if a.Run, err = listOf("run", f.Run); err != nil {
		return err
	}
	ways := 0
	for _, given := range []bool{len(a.Run) > 0, a.Shared != "", f.Attach != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return errors.New("choose one of run (one instance per buyer), shared (one instance for all buyers) and attach (a running program)")
	}
	if f.Attach != nil {
		if f.Attach.PID <= 0 {
			return errors.New("attach needs pid, the program's first process, and gates, the address at which it looks for each server")
		}
		a.Attach = f.Attach
	}
	if a.ReadyWithin, err = limitOf("ready-within", f.ReadyWithin, time.Minute); err != nil {
		return err
	}
	if a.IdleWithin, err = limitOf("idle-within", f.IdleWithin, 30*time.Second); err != nil {
		return err
	}
	if a.OwnHome && a.Attach != nil {
		return errors.New("home and attach cannot be combined: a running program has its HOME already")
	}
	if a.SameHosts && a.Run == nil {
		return errors.New("hosts needs an instance for each buyer: write `run:` instead of `shared:` or `attach:`")
	}
	if a.Ready != "" {
		return checkURL("ready", a.Ready)
	}
	return nil
}

// limitOf returns the duration of a key, or the default if the file has none.
func limitOf(key, text string, otherwise time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(cmp.Or(text, otherwise.String()))
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: %q is not a duration; expected, for example, 30s", key, text)
	}
	return d, nil
}
