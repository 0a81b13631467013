package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/require"
)

// TestAdd: the best result of a level is kept, and other levels are unchanged.
func TestAdd(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "new", "folder", "progress.json")}
	won := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		level string
		r     Result
		want  Result
	}{
		{"a", Result{Steps: 12, Switches: 2, Won: won}, Result{Steps: 12, Switches: 2, Won: won}},
		{"a", Result{Steps: 12, Switches: 3, Won: won}, Result{Steps: 12, Switches: 2, Won: won}},
		{"a", Result{Steps: 10, Switches: 5, Hints: 3, Won: won}, Result{Steps: 10, Switches: 5, Hints: 3, Won: won}},
		{"a", Result{Steps: 10, Switches: 5, Hints: 1, Seconds: 90, Won: won}, Result{Steps: 10, Switches: 5, Hints: 1, Seconds: 90, Won: won}},
		{"b", Result{Won: won}, Result{Won: won}},
	} {
		require.NoError(t, f.Add(step.level, step.r))
		levels, err := f.Load()
		if err != nil || levels[step.level] != step.want {
			t.Errorf("after %+v: %+v, %v", step.r, levels[step.level], err)
		}
	}
	if levels, _ := f.Load(); levels["a"].Steps != 10 || len(levels) != 2 {
		t.Errorf("%+v", levels)
	}
}

// TestDamaged: the error is one line, and the file is unchanged.
func TestDamaged(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "half": `{"version":1,"levels":{"a":{"st`, "other": `[]`, "later": `{"version":2,"levels":{}}`, "no levels": `{"version":1}`,
	} {
		f := File{filepath.Join(t.TempDir(), "progress.json")}
		require.NoError(t, os.WriteFile(f.Path, []byte(text), 0o600))
		_, err := f.Load()
		adding := f.Add("a", Result{Steps: 1})
		for _, err := range []error{err, adding} {
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--progress") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if now, _ := os.ReadFile(f.Path); string(now) != text {
			t.Errorf("%s: the file is now %q", name, now)
		}
	}
}
