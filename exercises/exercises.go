// Package exercises is the content of shop exercise: a folder an exercise, with its text, the
// learner's file to begin with, the reference solution, and typical wrong ones.
//
//	NN-name/README.md       the task, for the learner
//	NN-name/exercise.yaml   what it is judged by, its hints, and the words for each wrong one
//	NN-name/start/          the file to begin with
//	NN-name/solution/       the reference
//	NN-name/wrong/WHAT/     wrong in a typical way
//	NN-name/node, python/   the same for a program in that language, where there is one
//
// kata/ is what the Go code is written with, judge/ what it is judged by. How the command
// copies, builds and runs is internal/teach/exercise.
package exercises

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed [0-9]*-* python node
var files embed.FS

// names are the exercises in rising difficulty.
func names() []string {
	return []string{
		"01-one-statement",
		"02-lost-release",
		"03-token",
		"04-commit",
		"05-lost-race",
		"06-retry",
		"07-fencing",
		"08-reentrancy",
		"09-fair-queue",
		"10-grouping",
		"11-two-products",
		"12-two-stores",
	}
}

// Scenarios of a search: how each buyer asks.
const (
	Once     = ""          // for one product, once
	Again    = "again"     // twice under one idempotency key, the second time in another process
	BothWays = "both ways" // for two products at once, every other buyer in the other order
)

// An Exercise is one of them.
type Exercise struct {
	Number int    `yaml:"-"`
	Folder string `yaml:"-"`

	Title    string   `yaml:"title"`
	Minutes  int      `yaml:"minutes"`
	Redis    bool     `yaml:"redis"`    // it is about a lock in Redis
	Second   bool     `yaml:"second"`   // there is a second Redis, see kata.Kit.Stores
	Searches []Search `yaml:"searches"` // in this order; the first that finds something ends the check
	Line     bool     `yaml:"line"`     // who comes first must be served first
	Group    int      `yaml:"group"`    // so many transactions, at most, for ten buyers at once; 0: any number
	Keyed    bool     `yaml:"keyed"`    // the crowd asks under idempotency keys, each order several times
	Basket   bool     `yaml:"basket"`   // orders of several products
	Faults   []string `yaml:"faults"`   // of shop verify, with --engine local
	Hints    []string `yaml:"hints"`
	Why      string   `yaml:"why"` // of the reference

	// What a check must say, as regular expressions, of the file to begin with and of the
	// wrong ones by their folders.
	Start string            `yaml:"start"`
	Wrong map[string]string `yaml:"wrong"`
	// Languages have the same of programs in other languages.
	Languages map[string]Language `yaml:"languages"`
}

// A Language is the exercise for a program in another language.
type Language struct {
	File     string            `yaml:"file"` // the learner's
	Searches []Search          `yaml:"searches"`
	Start    string            `yaml:"start"`
	Wrong    map[string]string `yaml:"wrong"` // by the folders in wrong/
}

// A Search is what the explorer is asked.
type Search struct {
	Buyers   int      `yaml:"buyers"`   // 0 is 2
	Stock    int64    `yaml:"stock"`    // 0 is 1
	Events   []string `yaml:"events"`   // what may happen at any step, once each
	Bound    *int     `yaml:"bound"`    // preemptions; nil: any number
	Shared   bool     `yaml:"shared"`   // all buyers in one process
	Foreign  bool     `yaml:"foreign"`  // only whether a buyer deletes the lock of another counts
	Scenario string   `yaml:"scenario"` // see Once
}

// Name is what the search is called.
func (s Search) Name() string {
	who := "every order of two buyers' commands"
	if s.Buyers > 2 {
		who = fmt.Sprintf("every order of %d buyers' commands", s.Buyers)
	}
	if s.Bound != nil {
		who = strings.Replace(who, "every order", fmt.Sprintf("every order with up to %d switches", *s.Bound), 1)
	}
	words := map[string]string{"expire": "the lease runs out", "crash": "a buyer crashes", "forget": "one store forgets", "timeout": "a wait times out", "renew": "a watchdog is due"}
	for i, e := range s.Events {
		sep := " and "
		if i == 0 {
			sep = " where "
		}
		who += sep + words[e]
	}
	switch {
	case s.Shared:
		who += ", in one process"
	case s.Scenario == Again:
		who += ", each asking again under its key"
	case s.Scenario == BothWays:
		who += ", for two products at once"
	}
	if s.Foreign {
		who += ": whose lock is deleted"
	}
	return who
}

// All are the exercises, in order.
func All() ([]Exercise, error) {
	var all []Exercise
	for i, name := range names() {
		text, err := files.ReadFile(name + "/exercise.yaml")
		if err != nil {
			return nil, err
		}
		e := Exercise{Number: i + 1, Folder: name}
		if err := yaml.UnmarshalWithOptions(text, &e, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("%s/exercise.yaml: %w", name, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// Find finds an exercise by its number, its name, or its folder.
func Find(which string) (Exercise, error) {
	all, err := All()
	if err != nil {
		return Exercise{}, err
	}
	n, _ := strconv.Atoi(which)
	i := slices.IndexFunc(all, func(e Exercise) bool { return e.Number == n || e.Folder == which || e.Name() == which })
	if i < 0 {
		return Exercise{}, fmt.Errorf("there is no exercise %q; give 1 to %d, as shop exercise list shows them", which, len(all))
	}
	return all[i], nil
}

// Name is the folder's without its number.
func (e Exercise) Name() string { return e.Folder[strings.Index(e.Folder, "-")+1:] }

// Text is a file of the exercise.
func (e Exercise) Text(name string) (string, error) {
	text, err := files.ReadFile(path.Join(e.Folder, name))
	return string(text), err
}

// Files are those of one of its folders, by their names.
func (e Exercise) Files(folder string) (map[string]string, error) {
	found := map[string]string{}
	entries, err := fs.ReadDir(files, path.Join(e.Folder, folder))
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, err := e.Text(path.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		found[entry.Name()] = text
	}
	return found, err
}

// Shared are the files that all programs in a language stand on.
func Shared(language string) (map[string]string, error) { return Exercise{Folder: "."}.Files(language) }

// Sources are the folders of Go code that are judged in tests, and the words of each; the
// reference has none.
func (e Exercise) Sources() map[string]string {
	all := map[string]string{"start": e.Start, "solution": ""}
	for what, words := range e.Wrong {
		all["wrong/"+what] = words
	}
	return all
}

// Sources are the folders of a language, and the words of each; the reference has none.
func (l Language) Sources() map[string]string {
	all := map[string]string{"start": l.Start, "solution": ""}
	for what, words := range l.Wrong {
		all["wrong/"+what] = words
	}
	return all
}

// Check says what an exercise lacks.
func (e Exercise) Check() error {
	for what, words := range e.Sources() {
		if _, err := regexp.Compile(words); err != nil {
			return fmt.Errorf("%s: the words of %s: %w", e.Folder, what, err)
		}
		if files, err := e.Files(what); err != nil || len(files) == 0 {
			return fmt.Errorf("%s has no %s: %v", e.Folder, what, err)
		}
		if what != "solution" && words == "" {
			return fmt.Errorf("%s: %s has no words to be judged by", e.Folder, what)
		}
	}
	for name, l := range e.Languages {
		for what := range l.Sources() {
			if code, err := e.Files(name + "/" + what); err != nil || code[l.File] == "" {
				return fmt.Errorf("%s has no %s/%s/%s", e.Folder, name, what, l.File)
			}
		}
		if len(l.Wrong) < 3 || l.Start == "" {
			return fmt.Errorf("%s: %s lacks words for its start, or three wrong ones", e.Folder, name)
		}
	}
	switch {
	case e.Title == "" || e.Minutes < 1 || e.Why == "":
		return fmt.Errorf("%s: title, minutes and why are needed", e.Folder)
	case len(e.Hints) != 3:
		return fmt.Errorf("%s has %d hints; three are wanted", e.Folder, len(e.Hints))
	case len(e.Wrong) < 3:
		return fmt.Errorf("%s has %d wrong solutions; three are wanted", e.Folder, len(e.Wrong))
	case len(e.Searches) == 0:
		return fmt.Errorf("%s has no search", e.Folder)
	}
	return nil
}

// LanguageNames are the languages besides Go that it is there for.
func (e Exercise) LanguageNames() []string { return slices.Sorted(maps.Keys(e.Languages)) }

// LearnersFile is the file that the learner changes.
func (e Exercise) LearnersFile(language string) string {
	if l, ok := e.Languages[language]; ok {
		return l.File
	}
	return "shop.go"
}
