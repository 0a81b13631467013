package exercise

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/internal/judge/report"
)

// A Progress records which exercises a learner has solved, and the language of the first solution. It is a
// file in the user's configuration folder.
type Progress struct {
	file   string
	solved map[string]string // language of the solution, by the exercise's folder
}

// LoadProgress reads the progress. If there is no file, no exercise is solved.
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

// Table lists exercises, and the language in which each was solved.
func (p Progress) Table(all []exercises.Exercise) report.Table {
	t := report.Table{Columns: report.Columns("", "EXERCISE", "MINUTES", "SOLVED")}
	t.Columns[0].Numbers, t.Columns[2].Numbers = true, true
	for _, e := range all {
		title := e.Title
		if languages := e.LanguageNames(); len(languages) > 0 {
			title += " (also for " + strings.Join(languages, ", ") + ")"
		}
		t.Rows = append(t.Rows, report.Texts(fmt.Sprint(e.Number), title, fmt.Sprint(e.Minutes), p.solved[e.Folder]))
	}
	return t
}

// Solved records that an exercise was solved.
func (p Progress) Solved(e exercises.Exercise, language string) error {
	if p.solved[e.Folder] != "" {
		return nil
	}
	if p.solved == nil { // the file contained null
		p.solved = map[string]string{}
	}
	p.solved[e.Folder] = cmp.Or(language, "go")
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
