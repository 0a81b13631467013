package app

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// TestSchemaFolder: a folder stands for its migrations that create tables, sorted by version.
func TestSchemaFolder(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"golang-migrate": {map[string]string{"2_b.up.sql": "b", "10_c.up.sql": "c", "1_a.up.sql": "a", "1_a.down.sql": "x"}, []string{"a", "b", "c"}},
		"Flyway":         {map[string]string{"V1__a.sql": "a", "V10__c.sql": "c", "V2__b.sql": "b", "U2__b.sql": "x"}, []string{"a", "b", "c"}},
		"Prisma":         {map[string]string{"20240102_b/migration.sql": "b", "20240101_a/migration.sql": "a", "migration_lock.toml": "x"}, []string{"a", "b"}},
		"Diesel":         {map[string]string{"1/up.sql": "a", "1/down.sql": "x", "2/up.sql": "b"}, []string{"a", "b"}},
		"goose":          {map[string]string{"1_a.sql": "-- +goose Up\na\n-- +goose Down\nx\n"}, []string{"-- +goose Up\na\n"}},
		"dbmate":         {map[string]string{"1_a.sql": "-- migrate:up\na\n\n-- migrate:down\nx\n"}, []string{"-- migrate:up\na\n\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(dir, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			scripts, err := readSchema(dir)
			var got []string
			for _, s := range scripts {
				got = append(got, s.text)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestMarks: Marks returns the values with a mark, and ignores comments that mention the marks.
func TestMarks(t *testing.T) {
	guessed, missing, err := Marks([]byte("# GUESS marks a value\nrun: a   # GUESS: because b\nenv:\n  A: FILL_IN   # FILL_IN: c\n# FILL_IN\nnever:\n  - SELECT FILL_IN   # FILL_IN: d\n  - SELECT 1   # GUESS: e\n"))
	if err != nil || !slices.Equal(guessed, []string{"run (line 2)", "never (line 8)"}) || !slices.Equal(missing, []string{"env.A (line 4)", "never (line 7)"}) {
		t.Errorf("%q, %q, %v", guessed, missing, err)
	}
}
