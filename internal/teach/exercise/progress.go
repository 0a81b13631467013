package exercise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/internal/judge/report"
)

// A Progress records which exercises were solved, and the language of the first solution. It is
// stored in the user's configuration folder.
type Progress struct {
	file   string
	solved map[string]string // language of the solution, by the exercise's folder
}

// LoadProgress reads the progress. Without a file, nothing is solved.
func LoadProgress() (p Progress, _ error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return p, fmt.Errorf("cannot find your configuration folder, where your progress belongs: %w", err)
	}
	p = Progress{filepath.Join(folder, "oversell", "exercises.json"), map[string]string{}}
	text, err := os.ReadFile(p.file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p.solved)
	}
	if err != nil {
		return p, fmt.Errorf("cannot read your progress from %s (%w); repair or delete the file", p.file, err)
	}
	return p, nil
}

// On returns the language in which an exercise was solved, or "".
func (p Progress) On(e exercises.Exercise) string { return p.solved[e.Folder] }

// Solved records that an exercise was solved.
func (p Progress) Solved(e exercises.Exercise, language string) error {
	if p.solved[e.Folder] != "" {
		return nil
	}
	if language == "" {
		language = "go"
	}
	if p.solved == nil { // the file contained null
		p.solved = map[string]string{}
	}
	p.solved[e.Folder] = language
	text, err := json.MarshalIndent(p.solved, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(p.file), 0o755)
	}
	if err == nil {
		err = report.Replace(p.file, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("the exercise passed, but saving your progress failed: %w", err)
	}
	return nil
}
