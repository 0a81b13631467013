package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

func setupShop(t *testing.T, more string) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	return appFile(t, fmt.Sprintf(`name: setup
run: python3 %s/shop.py
ready: http://127.0.0.1:8080/
mysql: 127.0.0.1:3306
local: true
schema: %s
buyer: POST http://127.0.0.1:8080/buy
never: [ SELECT 1 FROM orders HAVING count(*) <> :sold ]
`, absolute(t, "testdata/setup"), absolute(t, "../../../examples/schema.sql"))+more)
}

// TestAppSetup: this shop answers a refusal with 200, must be reset over HTTP, and needs a HOME for
// each instance. If a key for one of these is missing, the shop cannot be explored.
func TestAppSetup(t *testing.T) {
	tier.Soak(t, "no other test has it: a reset over HTTP, and a HOME for each instance")
	t.Parallel()
	const (
		reset = "reset: { http: POST http://127.0.0.1:8080/reset }\n"
		sql   = "reset: { sql: [ UPDATE items SET stock = 1, DELETE FROM orders ] }\n"
		sold  = "sold: { status: 200, body: '\"placeOrder\": \\{' }\n"
		home  = "home: own\n"
	)
	code, r, stderr := search(t, setupShop(t, reset+sold+home))
	if code != 0 || !r.Complete || r.Void > 0 || r.Explored < 2 || r.Violations > 0 {
		t.Errorf("exit %d, %d explored, %d break, %v: %s", code, r.Explored, r.Violations, r.Voids, stderr)
	}
	if code, r, stderr := search(t, setupShop(t, reset+home+"sold: 200\n")); code != shoptest.Broken { // a refusal counts as a sale
		t.Errorf("exit %d, %d of %d break: %s", code, r.Violations, r.Explored, stderr)
	}
	for _, c := range []struct{ name, file, says string }{
		{"reset by SQL only", sql + sold + home, "buyer 1 alone: no command came to a gate"},
		{"one HOME", reset + sold + "env: { HOME: " + t.TempDir() + " }\n", "buyer 2 alone"},
		{"reset fails", strings.Replace(reset, "/reset", "/broken", 1) + sold + home, `reset fails: POST http://127.0.0.1:8080/broken: it is answered 500 {"error": "no reset"}`},
		{"nobody listens", strings.Replace(reset, "8080", "8081", 1) + sold + home, "reset fails: POST http://127.0.0.1:8081/reset: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, stderr := exploreApp(t, setupShop(t, c.file), "--app-check", "--json")
			if code != shoptest.Harness || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d: %s; want %q", code, stderr, c.says)
			}
		})
	}
}

// TestAppCheckRestarts: each buyer leaves a lock, so the explorer restarts the program before the reset
// over HTTP. Because of a rule with :sold, the check also sends the buyers one after the other.
func TestAppCheckRestarts(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	file := setupShop(t, "reset: { http: POST http://127.0.0.1:8080/reset }\nsold: { status: 200, body: placeOrder }\nhome: own\n")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := strings.NewReplacer("8080/buy", "8080/keep", "SELECT 1 FROM orders HAVING count(*) <> :sold", "SELECT 1 FROM items WHERE stock > 0 AND :sold < 2").Replace(string(text))
	shoptest.Write(t, file, changed)
	if code, stdout, stderr := exploreApp(t, file, "--app-check"); code != 0 || strings.Count(stdout, "SELECT GET_LOCK") != 2 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// TestAppCheckJSON: the JSON of --app-check contains the same facts as the text.
func TestAppCheckJSON(t *testing.T) {
	tier.Soak(t, "no other test has it: the JSON of --app-check")
	t.Parallel()
	code, stdout, stderr := exploreApp(t, shoptest.Example(t, "python/naive.yaml"), "--app-check", "--json")
	var r target.CheckReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	if !r.OK || r.Program != "python-naive" || !strings.HasPrefix(r.Servers, "MariaDB ") || len(r.Buyers) != 2 {
		t.Fatalf("%+v", r)
	}
	b := r.Buyers[1]
	if b.Buyer != 2 || !b.Sold || b.Answer != "200 bought" || b.TookMS <= 0 || len(b.Commands) != 3 || b.Commands[0] != (gates.Seen{Server: "mysql", Text: "SELECT stock FROM items WHERE id = 1", Result: "stock=1"}) || b.Why != "" {
		t.Errorf("%+v", b)
	}
}

// copied returns a folder with files of examples/, without an oversell.yaml.
func copied(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("../../../examples", file))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600))
	}
	return dir
}

// TestInit: for a shop of examples/, shop init drafts a file with which the search finds the known
// violations. The file of the shop in Python needs an edit of one marked line.
func TestInit(t *testing.T) {
	tier.Soak(t, "no other test has it: a search with a drafted file")
	t.Parallel()
	for _, c := range []struct {
		name     string
		files    []string
		edits    map[string]string // edits of marked lines
		violated int
	}{
		{"node", []string{"node/server.mjs", "node/package.json", "schema.sql"}, nil, 6},
		{"python", []string{"python/shop.py", "schema.sql"}, map[string]string{
			"run: python3 shop.py ": "run: python3 shop.py naive ", // shop.py requires a mode
		}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := shoptest.Example(t, c.name+"/naive.yaml")
			dir := copied(t, c.files...)
			if c.name == "node" {
				require.NoError(t, os.Symlink(filepath.Join(filepath.Dir(from), "node_modules"), filepath.Join(dir, "node_modules")))
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
			require.NoError(t, err)
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

// TestMigrate: the command of `migrate` creates the tables through the gates, with the variables of
// `env`. If it fails, the error is one line with the command's last output.
func TestMigrate(t *testing.T) {
	tier.Soak(t, "no other test has it: a migration through the gates")
	t.Parallel()
	from := shoptest.Example(t, "python/naive.yaml")
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	dir := copied(t, "python/shop.py", "schema.sql")
	script := `import os, pymysql
connection = pymysql.connect(host="127.0.0.1", port=3306, user=os.environ["DB_USER"], database="shop", autocommit=True)
for statement in open("schema.sql").read().split(";"):
    if statement.strip():
        connection.cursor().execute(statement)
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "migrate.py"), []byte(script), 0o600))
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
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		if code, stdout, stderr := exploreApp(t, file, "--app-check"); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s: exit %d: %s%s; want exit %d, %s", c.command, code, stdout, stderr, c.code, c.says)
		}
	}
}
