// Package exercises is the content of `shop exercise`. Each exercise is a folder:
//
//	NN-name/README.md         the task, for the learner
//	NN-name/exercise.yaml     the checks, the hints, and the expected output for each wrong answer
//	NN-name/start/            the learner's file at the beginning
//	NN-name/solution/         the reference
//	NN-name/wrong/NAME.patch  a typical mistake, as a patch on start/ or solution/
//	NN-name/node, python/     the same for a program in that language
//
// Answers in Go are written with the package in kata/ and tested by the one in judge/. Package
// internal/teach/exercise copies, builds and runs them. Its package exercisetest applies the patches.
//
// To add an exercise:
//
//  1. Write the task in README.md, the code in start/shop.go and solution/shop.go, and three typical
//     mistakes. Both files are package exercise with func New(kit kata.Kit) kata.Strategy.
//  2. A mistake is a patch on start or solution, whichever is shorter. Its first line describes the
//     mistake. To make it, write wrong.go outside the folder, then run, in the exercise's folder:
//     diff -U1 --label start/shop.go --label wrong/shop.go start/shop.go wrong.go >> wrong/NAME.patch
//  3. Write exercise.yaml. For start and each mistake it has a regular expression that the check's
//     output must match.
//  4. Run go test ./internal/teach/exercise -run 'TestJudged/Sources/NN-NAME'. The reference must
//     pass, and each mistake must fail in the expected words.
//  5. For another language, add NN-NAME/LANGUAGE/ with app.yaml, start/, solution/ and
//     wrong/NAME.patch, and an entry under languages in exercise.yaml. Then run
//     go test ./internal/teach/exercise -run 'TestExercisePrograms/NN-NAME'.
package exercises

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/oversell/oversell/internal/nearest"
)

//go:embed [0-9]*-* python node
var files embed.FS

// The scenarios of a search: how each buyer asks.
const (
	Once     = ""          // each buyer asks for one product, once
	Again    = "again"     // each buyer asks twice under one idempotency key, the second time in another process
	BothWays = "both ways" // each buyer asks for two products at once; every second buyer names them in reverse
)

// An Exercise is the content of exercise.yaml.
type Exercise struct {
	Number int    `yaml:"-"`
	Folder string `yaml:"-"`

	Title    string   `yaml:"title"`
	Minutes  int      `yaml:"minutes"`
	Redis    bool     `yaml:"redis"`    // the exercise is about a lock in Redis
	Second   bool     `yaml:"second"`   // there is a second Redis, in kata.Kit.Stores
	Searches []Search `yaml:"searches"` // in this order; the first finding ends the check
	Line     bool     `yaml:"line"`     // buyers must be served in the order of arrival
	Group    int      `yaml:"group"`    // maximum transactions for ten buyers at once; 0: unlimited
	Keyed    bool     `yaml:"keyed"`    // the buyers send idempotency keys, and repeat each order
	Basket   bool     `yaml:"basket"`   // orders have several products
	Faults   []string `yaml:"faults"`   // the faults to inject, as by `shop verify --engine local`
	Hints    []string `yaml:"hints"`
	Why      string   `yaml:"why"` // why the reference is correct

	// The findings that the judge must report, as regular expressions: for the start, and for each wrong
	// answer by the name of its patch.
	Start string            `yaml:"start"`
	Wrong map[string]string `yaml:"wrong"`

	Languages map[string]Language `yaml:"languages"` // besides Go
}

// A Language describes the exercise for a program in another language.
type Language struct {
	File     string            `yaml:"file"` // the file that the learner changes
	Searches []Search          `yaml:"searches"`
	Start    string            `yaml:"start"`
	Wrong    map[string]string `yaml:"wrong"`
}

// A Search configures one search of the explorer.
type Search struct {
	Buyers   int      `yaml:"buyers"`   // 0 means 2
	Stock    int64    `yaml:"stock"`    // 0 means 1
	Events   []string `yaml:"events"`   // each may happen once, at any step
	Bound    *int     `yaml:"bound"`    // maximum preemptions; nil: unlimited
	Shared   bool     `yaml:"shared"`   // all buyers in one process
	Foreign  bool     `yaml:"foreign"`  // the only violation to find is a buyer that releases another holder's lock
	Scenario string   `yaml:"scenario"` // Once, Again or BothWays
}

// Name describes the search in words.
func (s Search) Name() string {
	who := "every order of two buyers' commands"
	if s.Buyers > 2 {
		who = fmt.Sprintf("every order of %d buyers' commands", s.Buyers)
	}
	if s.Bound != nil {
		who = strings.Replace(who, "every order", fmt.Sprintf("every order with up to %d switches", *s.Bound), 1)
	}
	words := map[string]string{"expire": "the lease expires", "crash": "a buyer crashes", "forget": "one store forgets", "timeout": "a wait times out", "renew": "a watchdog is due", "raise": "the sale raises an error or panics", "no-unlock": "a buyer forgets its unlock", "restock": "another process restocks"}
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

// All returns the exercises in the order of their folders, the easiest first.
func All() ([]Exercise, error) {
	described, err := fs.Glob(files, "*/exercise.yaml") // sorted
	if err != nil {
		return nil, err
	}
	var all []Exercise
	for i, file := range described {
		e := Exercise{Number: i + 1, Folder: path.Dir(file)}
		text, err := files.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalWithOptions(text, &e, yaml.Strict())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// Find returns the exercise with a number, a name or a folder.
func Find(which string) (Exercise, error) {
	all, err := All()
	if err != nil {
		return Exercise{}, err
	}
	n, _ := strconv.Atoi(which)
	i := slices.IndexFunc(all, func(e Exercise) bool { return e.Number == n || e.Folder == which || e.Name() == which })
	if i < 0 {
		var names []string
		for _, e := range all {
			names = append(names, e.Name())
		}
		return Exercise{}, nearest.Unknown("exercise", which, names, "shop exercise list")
	}
	return all[i], nil
}

// Name returns the folder's name without its number.
func (e Exercise) Name() string { return e.Folder[strings.Index(e.Folder, "-")+1:] }

// Text reads a file of the exercise.
func (e Exercise) Text(name string) (string, error) {
	text, err := files.ReadFile(path.Join(e.Folder, name))
	return string(text), err
}

// Files reads the files of a folder of the exercise. It maps their names to their texts.
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

// Shared reads the files that every program in a language needs.
func Shared(language string) (map[string]string, error) { return Exercise{Folder: "."}.Files(language) }

// LanguageNames lists the languages besides Go.
func (e Exercise) LanguageNames() []string { return slices.Sorted(maps.Keys(e.Languages)) }

// LearnersFile names the file that the learner changes; language "" is Go.
func (e Exercise) LearnersFile(language string) string {
	if l, ok := e.Languages[language]; ok {
		return l.File
	}
	return "shop.go"
}
