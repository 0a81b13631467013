// Package results stores in a file which levels a player has won, and how well.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/plural"
)

// A Result is a level that was won.
type Result struct {
	Steps    int       `json:"steps"` // 0: won by the claim that the code cannot be broken
	Switches int       `json:"switches"`
	Seconds  int       `json:"seconds"`
	Hints    int       `json:"hints"`
	Won      time.Time `json:"won"`
}

// better compares two results by steps, then by switches between buyers, hints and time. The first of these
// that differs decides.
func (r Result) better(than Result) bool {
	for _, pair := range [][2]int{{r.Steps, than.Steps}, {r.Switches, than.Switches}, {r.Hints, than.Hints}, {r.Seconds, than.Seconds}} {
		if pair[0] != pair[1] {
			return pair[0] < pair[1]
		}
	}
	return false
}

// String describes the result in words.
func (r Result) String() string {
	text := Cost(r.Steps, r.Switches)
	if r.Steps == 0 {
		text = "claimed"
	}
	if r.Hints > 0 {
		text += ", " + plural.Count(r.Hints, "hint")
	}
	return text
}

// Cost describes the cost of a path in words.
func Cost(steps, switches int) string {
	return fmt.Sprintf("%s, %d %s", plural.Count(steps, "step"), switches, plural.Word(switches, "switch", "switches"))
}

// File is the file of the results.
type File struct{ Path string }

// DefaultPath returns the path of the file in the user's configuration folder.
func DefaultPath() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a folder for your progress (%w); add --progress FILE", err)
	}
	return filepath.Join(folder, "oversell", "progress.json"), nil
}

type document struct {
	Version int               `json:"version"`
	Levels  map[string]Result `json:"levels"` // the best result, by the level's name
}

const version = 1

// Load reads the results. Without a file there are none. A damaged file gives an error of one line
// and stays unchanged.
func (f File) Load() (map[string]Result, error) {
	text, err := os.ReadFile(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]Result{}, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read your progress: %w; choose another file with --progress", err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w) and stays unchanged; move it away, or choose another file with --progress", f.Path, err)
	}
	if d.Version != version || d.Levels == nil {
		return nil, fmt.Errorf("%s is not a progress file of version %d and stays unchanged; choose another file with --progress", f.Path, version)
	}
	return d.Levels, nil
}

// Add stores a result if it is better than the stored one. It first reads the file again, since another game
// may have written to it. Then it replaces the file atomically.
func (f File) Add(level string, r Result) error {
	levels, err := f.Load()
	if err != nil {
		return err
	}
	if old, won := levels[level]; won && !r.better(old) {
		return nil
	}
	levels[level] = r
	text, err := json.MarshalIndent(document{version, levels}, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(f.Path), 0o755)
	}
	if err == nil {
		err = report.Replace(f.Path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("--progress: %w", err)
	}
	return nil
}
