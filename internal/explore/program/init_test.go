package program_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// copied returns a folder with files of examples/ and no file that describes the shop.
func copied(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("../../../examples", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestInit: shop init drafts a file for a shop of examples/ that the search accepts as it is, and the
// search finds the known violation. The shop in Python needs an edit of one marked line.
func TestInit(t *testing.T) {
	tier.Soak(t, "no other test has it: a search with a drafted file")
	t.Parallel()
	for _, c := range []struct {
		name     string
		files    []string
		edits    map[string]string // of marked lines
		violated int
	}{
		{"node", []string{"node/server.mjs", "node/package.json", "schema.sql"}, nil, 6},
		{"python", []string{"python/shop.py", "schema.sql"}, map[string]string{
			"run: python3 shop.py ": "run: python3 shop.py naive ", // it requires a mode
		}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := shoptest.Example(t, c.name+"/naive.yaml")
			dir := copied(t, c.files...)
			if c.name == "node" {
				if err := os.Symlink(filepath.Join(filepath.Dir(from), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
					t.Fatal(err)
				}
			}
			code, stdout, stderr := shoptest.Run(t, "init", dir)
			if code != 0 || !strings.Contains(stdout, "next: shop explore --app") {
				t.Fatalf("init: exit %d: %s%s", code, stdout, stderr)
			}
			if c.name == "node" {
				if want := strings.ReplaceAll(shoptest.Block(t, "guides/test-your-shop.md", "$ ./shop init"), "../mine", dir); "$ ./shop init "+dir+"\n"+stdout != want+"\n" {
					t.Errorf("the guide shows\n%s\nthe output is\n%s", want, stdout)
				}
			}
			file := filepath.Join(dir, "oversell.yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(text), "\n")
			for old, by := range c.edits {
				i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, old) && strings.Contains(line, "# GUESS") })
				if i < 0 {
					t.Fatalf("no marked line has %q:\n%s", old, text)
				}
				lines[i] = strings.Replace(lines[i], old, by, 1)
			}
			shoptest.Write(t, file, strings.Join(lines, "\n"))
			code, out, problem := exploreApp(t, file, "--app-check")
			if code != 0 || !strings.Contains(out, "told as a sale") || !strings.Contains(out, "still marked as a guess: run (line ") {
				t.Fatalf("--app-check: exit %d: %s%s\n%s", code, out, problem, text)
			}
			if code, r, problem := search(t, file); code != shoptest.Broken || r.Violations != c.violated || !r.Complete {
				t.Errorf("exit %d, %d violations, complete %v: %s; want %d", code, r.Violations, r.Complete, problem, c.violated)
			}
		})
	}
}

// TestMigrate: the command of `migrate` creates the tables through the gates, with the variables of `env`.
// A command that fails is one line with its last output.
func TestMigrate(t *testing.T) {
	tier.Soak(t, "no other test has it: a migration through the gates")
	t.Parallel()
	from := shoptest.Example(t, "python/naive.yaml")
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	dir := copied(t, "python/shop.py", "schema.sql")
	script := `import os, pymysql
connection = pymysql.connect(host="127.0.0.1", port=3306, user=os.environ["DB_USER"], database="shop", autocommit=True)
for statement in open("schema.sql").read().split(";"):
    if statement.strip():
        connection.cursor().execute(statement)
`
	if err := os.WriteFile(filepath.Join(dir, "migrate.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "oversell.yaml")
	for _, c := range []struct {
		command string
		code    int
		says    string
	}{
		{"python3 migrate.py", 0, "told as a sale"},
		{"python3 none.py", shoptest.Harness, "migrate: python3 none.py: it failed (exit status 2); it printed: "},
	} {
		content := strings.Replace(string(text), "schema: ../schema.sql", "env: { DB_USER: root }\nmigrate: "+c.command, 1)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr := exploreApp(t, file, "--app-check"); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s: exit %d: %s%s; want exit %d, %s", c.command, code, stdout, stderr, c.code, c.says)
		}
	}
}
