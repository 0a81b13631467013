package verify

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
)

// ReadFile returns the report in a JSON file of verify.
func ReadFile(path string) (r Report, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: not a JSON report of shop verify: %w", path, err)
	}
	if len(r.Cells) == 0 {
		return r, errors.New(path + ": not a JSON report of shop verify: it has no cells")
	}
	return r, nil
}

// Cell returns the result of one strategy under one condition. The name is STRATEGY/CONDITION, such as
// "redis/pause".
func (r Report) Cell(name string) (*Cell, error) {
	strategy, condition, ok := strings.Cut(name, "/")
	strategy = lockstrategy.Resolve(strategy)
	if !ok {
		return nil, fmt.Errorf("invalid cell %q; expected STRATEGY/CONDITION, for example redis/pause", name)
	}
	if c := r.cell(strategy, promise.Condition(condition)); c != nil {
		return c, nil
	}
	var conditions []string
	for _, c := range r.Cells {
		if c.Strategy == strategy {
			conditions = append(conditions, string(c.Fault))
		}
	}
	_, known := lockstrategy.ByName(strategy)
	switch {
	case conditions == nil && !known:
		return nil, nearest.Unknown("strategy", strategy, lockstrategy.Names(), "shop strategies")
	case !slices.Contains(promise.Columns(), promise.Condition(condition)):
		return nil, nearest.Unknown("fault", condition, promise.Columns(), "shop help faults")
	case conditions == nil:
		return nil, fmt.Errorf("this report has no strategy %s; run shop verify with --strategy %s", strategy, strategy)
	}
	return nil, fmt.Errorf("this report has %s only under %s", strategy, strings.Join(conditions, ", "))
}

// Newest returns the newest JSON file in a folder; "" if there is none.
func Newest(folder string) (newest string) {
	files, _ := filepath.Glob(filepath.Join(folder, "*.json"))
	var at int64
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.ModTime().UnixNano() > at {
			newest, at = file, info.ModTime().UnixNano()
		}
	}
	return newest
}

// Explain returns the promise, the verdict and the evidence of a cell as readable text.
func Explain(c Cell) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, text)
		}
	}
	entry, _ := lockstrategy.ByName(c.Strategy)
	line("strategy", c.Strategy+about(entry.Summary))
	line("condition", string(c.Fault)+about(describe(c.Fault)))
	line("promised", cmp.Or(string(c.Promise), "nothing"+about(c.NoPromise)))
	seen := presented{&c}.counted()
	if c.OK && c.Promise != "" {
		seen += ", as promised"
	}
	line("seen", seen)
	line("evidence", strings.ReplaceAll(c.Evidence, "; ", fmt.Sprintf("\n%-10s ", "")))
	line("again", "./"+c.Replay)
	line("history", c.History)
	if c.Witness != nil {
		b.WriteString("\n" + c.Witness.Text)
	}
	return b.String()
}

func about(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func describe(c promise.Condition) string {
	for _, f := range fault.All() {
		if f.Name == c {
			return f.About
		}
	}
	return promise.About(c)
}
