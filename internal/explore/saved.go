package explore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/report"
)

// savedVersion must change if the meaning of existing files changes.
const savedVersion = 1

// mostSaved is the maximum size in bytes of a file with a saved schedule. It has room for schedule.MaxLine steps with long names.
const mostSaved = 100 << 20

// Saved returns a witness of this explorer's program in the form that Save writes. It returns an error for a strategy's
// witness, and for a schedule that could not be repeated.
func (x *Explorer) Saved(w *Witness) (*Saved, error) {
	if w.Program == "" || w.Choices == nil {
		return nil, errors.New("cannot save this schedule: it belongs to no program, or it did not run a second time")
	}
	s := &Saved{
		Version: savedVersion, Program: w.Program, Buyers: x.config.Buyers, Shared: x.config.Shared, Overlap: x.config.Split, Events: x.config.Events,
		Verdict: w.Verdict, Why: w.Why, Schedule: w.Schedule, Steps: w.Choices,
	}
	if s.Events == nil {
		s.Events = []Event{}
	}
	return s, nil
}

// Save writes a witness of this explorer's program to a file as JSON, for LoadSaved. The file is replaced completely
// or, after an error, unchanged. The error is one line.
func (x *Explorer) Save(w *Witness, path string) error {
	s, err := x.Saved(w)
	if err != nil {
		return err
	}
	format := report.Format{Write: func(out io.Writer, d report.Document) error { return report.JSON(out, d.Value) }}
	return report.Save([]report.File{{Flag: "save", Path: path, Format: format}}, report.Document{Value: s}, os.Stdout)
}

// LoadSaved reads a file that Save has written. The error is one line.
func LoadSaved(path string) (*Saved, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostSaved+1))
	if err != nil {
		return nil, err
	}
	s, err := parseSaved(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a file of --save: %w", path, err)
	}
	return s, nil
}

func parseSaved(text []byte) (*Saved, error) {
	if len(text) > mostSaved {
		return nil, fmt.Errorf("it has more than %d bytes", mostSaved)
	}
	var version struct{ Version int }
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, oneLine(err)
	}
	if version.Version != savedVersion {
		return nil, fmt.Errorf("it has version %d, and this program reads version %d; save it again", version.Version, savedVersion)
	}
	s := &Saved{}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(s); err != nil {
		return nil, oneLine(err)
	}
	return s, checkSaved(s)
}

func oneLine(err error) error {
	return errors.New(strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), " "))
}

func checkSaved(s *Saved) error {
	switch {
	case !schedule.ProgramName(s.Program):
		return fmt.Errorf("invalid program name %q", s.Program)
	case s.Buyers < MinBuyers || s.Buyers > MaxBuyers:
		return fmt.Errorf("buyers must be between %d and %d (got %d)", MinBuyers, MaxBuyers, s.Buyers)
	case len(s.Steps) == 0 || len(s.Steps) > schedule.MaxLine:
		return fmt.Errorf("steps must be between 1 and %d (got %d)", schedule.MaxLine, len(s.Steps))
	}
	known := Events(s.Shared)
	for _, e := range s.Events {
		if !slices.Contains(known, e) {
			return fmt.Errorf("unknown event %q", e)
		}
	}
	for i, c := range s.Steps {
		_, err := ParseSchedule(fmt.Sprintf("v1:%s:b2:s1:%s", s.Program, c.Token))
		switch {
		case err != nil || strings.ContainsAny(c.Token, ".*: \n"):
			return fmt.Errorf("step %d: invalid step %q", i+1, c.Token)
		case c.Name == "":
			return fmt.Errorf("step %d has no name", i+1)
		case c.Buyer < 0 || c.Buyer > s.Buyers:
			return fmt.Errorf("step %d: buyer must be between 0 and %d (got %d)", i+1, s.Buyers, c.Buyer)
		}
	}
	return nil
}

// find returns the current choice for a saved step: the command of the same buyer with the same name. If there are
// several, it returns the one with the saved token, which is the step's text in a replay string. It finds events, and
// pairs of commands that were sent together, by the token alone.
func find(choices []schedule.Choice, step witness.Choice) (found schedule.Choice, ok bool) {
	byToken, same := schedule.Find(choices, step.Token)
	name := withoutNames(step.Name)
	if same && byToken.Buyer == step.Buyer && (withoutNames(byToken.Name) == name || byToken.Event != "") {
		return byToken, true
	}
	for _, c := range choices {
		if c.Command() && c.Buyer == step.Buyer && withoutNames(c.Name) == name {
			return c, true
		}
	}
	return found, false
}

// valueName matches the name that stands for a value that differs between runs: <orders.1>, or <1> in old files.
var valueName = regexp.MustCompile(`<(?:\d+|[\w-]+[.:]\w+|time)>`)

// withoutNames replaces each such name in a command by <>.
func withoutNames(name string) string { return valueName.ReplaceAllString(name, "<>") }

// OtherWay describes the step at which a program deviated from the saved schedule.
type OtherWay struct {
	Step     int    // number of the step, from 1
	Buyer    int    // the buyer; 0 for an event
	Expected string // name of the saved command; "": there was no further step
	Got      string // names of the available commands; "": none
}

// String returns a sentence without its full stop.
func (o OtherWay) String() string {
	who := fmt.Sprintf("buyer %d", o.Buyer)
	did := who + " sends " + o.Got
	switch {
	case o.Got == "" && o.Buyer == 0:
		did = "nothing is there"
	case o.Got == "":
		did = who + " sends nothing"
	}
	return fmt.Sprintf("the program now takes another way at step %d: %s where %s was expected", o.Step, did, cmp.Or(o.Expected, "no more"))
}

// elsewhere describes a program that offered the given choices instead of the saved step. After the last saved step,
// the parameter `step` is zero.
func elsewhere(depth int, choices []schedule.Choice, step witness.Choice) *OtherWay {
	o := &OtherWay{Step: depth + 1, Buyer: step.Buyer, Expected: step.Name}
	var names []string
	for _, c := range choices {
		if o.Expected == "" && o.Buyer == 0 {
			o.Buyer = c.Buyer
		}
		if c.Command() && c.Buyer == o.Buyer {
			names = append(names, c.Name)
		}
	}
	o.Got = strings.Join(names, " and ")
	return o
}
