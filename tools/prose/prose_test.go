package prose

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestProject checks the files that git tracks or would add.
func TestProject(t *testing.T) {
	const root = "../.."
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range strings.Split(string(out), "\x00") {
		info, err := os.Stat(root + "/" + name) // git also lists deleted files
		if err == nil && info.Mode().IsRegular() {
			paths = append(paths, name)
		}
	}
	found, err := check(os.DirFS(root), paths)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		fmt.Println(f)
		t.Fail()
	}
}

// TestSentences checks old sentences of this project and their rewrites. A sentence without a rule is
// one that no rule may report.
func TestSentences(t *testing.T) {
	for _, test := range []struct{ rule, old, rewrite string }{
		{
			"subject",
			"Who is held up keeps nobody out: its connection counts as one that waits",
			"A delayed refusal does not block new clients: its connection counts as idle and can be closed.",
		},
		{
			"subject",
			"What grows at rest in each quarter of a process's life is said to grow; it does not change the exit code.",
			"A metric that rises in every quarter of a process's life while it is idle is reported as growing. This does not affect the exit code.",
		},
		{"subject", "Whoever waits is let go.", "The waiting buyers are released."},
		{"subject", "what the buyer knows", "the sales that the buyer knows of"},
		{"subject", "The search stops. Who waits is let go.", "The search stops. Who waits then?"},
		{"subject", "What sold the unit twice?\nWhat cannot be read the server refuses.", `"What cannot be read" is a quotation.`},
		{"word", "waits for what nobody will do", "waits forever"},
		{"word", "The retry is asked for by somebody.", "The client asks for the retry."},
		{"word", "how long a buy may take, but for its COMMIT", "how long a buy may take, except for its COMMIT"},
		{"word", "how long a buy may take, but\nfor its COMMIT", "`but for` is code."},
		{"word", `The reason, or "": nobody asks; "x".`, `The reason, or "": "nobody" is a quotation.`},
		{"word", "Tries in vain.", "The retry fails again."},
		{"word", "What comes to is told here?", "The outcome is reported here."},
		{
			"long",
			"lazyLog sells well on a database that acknowledges a COMMIT and writes it later (MySQL 8.0 Reference Manual, 17.14, " +
				"innodb_flush_log_at_trx_commit and _timeout): by default within the second, here within the half hour, so that no " +
				"write comes between the last sale and the kill.",
			"lazyLog sells on a database that acknowledges a COMMIT before it writes it (MySQL 8.0 Reference Manual, 17.14, " +
				"innodb_flush_log_at_trx_commit and _timeout). The delay is half an hour here, e.g. no write comes between the " +
				"last sale and the kill.",
		},
		{
			"long",
			strings.Repeat("word `code` ", 36),
			strings.Repeat("word → `code` \"and quotations\" ", 35),
		},
	} {
		if got := rules(paragraph{line: 1, text: test.old}.check("x")); !slices.Contains(got, test.rule) {
			t.Errorf("%q: rules %v; want %s", test.old, got, test.rule)
		}
		if got := rules(paragraph{line: 1, text: test.rewrite}.check("x")); got != nil {
			t.Errorf("%q: rules %v; want none", test.rewrite, got)
		}
	}
}

func rules(findings []finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.rule)
	}
	return all
}

// TestFiles checks a project with one breach of a rule, and the same project without the breach.
func TestFiles(t *testing.T) {
	const missing = "docs" + "/b.md" // in two parts, since TestProject reads this file too
	long := strings.Repeat("word. ", maxPageWords+1)
	for _, test := range []struct{ name, breach, fixed, want string }{
		{
			"a.go", "// Package a is short.\npackage a\n\n// A COMMIT that nobody answers is unknown.\n//\n//\tnobody is code\nvar a int\n",
			"// Package a is short.\npackage a\n\n// A COMMIT without an answer is unknown.\nvar a = `nobody`\n",
			"a.go:4: word: A COMMIT that nobody answers is unknown.",
		},
		{
			"a.go", "package a\n\n//go:generate nobody\n\nfunc Example() {\n\t// what runs\n\t// Output: nobody\n}\n",
			"package a\n\n//go:generate nobody\n\nfunc Example() {\n\t// Output: nobody\n}\n",
			"a.go:6: subject: what runs",
		},
		{
			"a.go", "package a\n\n// A list:\n//   - who waits\n//     is let go\nvar a int\n",
			"package a\n\n// A list:\n//   - the buyers that\n//     are released\nvar a int\n",
			"a.go:4: subject: who waits is let go",
		},
		{
			"README.md", "# What a page contains\n\nWho is late\nis refused.\n\n> Who is quoted is not checked.\n\n    who is code\n",
			"# What a page contains\n\nThe late buyer\nis refused.\n",
			"README.md:3: subject: Who is late is refused.",
		},
		{
			"README.md", "| what it is | b |\n|---|---|\n| waits in vain | `in vain` |\n",
			"| what it is | b |\n|---|---|\n| waits | `in vain` |\n",
			"README.md:3: word: waits in vain",
		},
		{"README.md", long, long[len("word. "):], "README.md:1: page: 1501 words; maximum 1500"},
		{"INDEX.md", "a\n", "[a](docs/A.md)\n", "docs/A.md:1: unlinked: no other page links to this page"},
		{
			"README.md", "[a](docs/A.md),\n[b](docs/B.md)\n",
			"[a](docs/A.md), [a folder](docs/), [a site](https://example.com/docs/B.md)\n",
			"README.md:2: link: docs/B.md does not exist",
		},
		{
			"README.md", "[a](docs/A.md#missing)\n", "[a](docs/A.md#some-code-twice) [b](docs/A.md#some-code-twice-1)\n",
			"README.md:1: link: docs/A.md#missing does not exist",
		},
		{"README.md", "<img src=\"a.svg\">\n", "<img src=\"docs/A.md\">\n", "README.md:1: link: a.svg does not exist"},
		{
			"Makefile", "a:\n\tcat " + missing + " docs/NAME.md\n", "a:\n\tcat docs/NAME.md other/" + missing + "\n",
			"Makefile:2: link: " + missing + " does not exist",
		},
	} {
		files := fstest.MapFS{
			"docs/A.md": {Data: []byte("# Some `code`, twice\n\n# Some code, twice\n")},
			"INDEX.md":  {Data: []byte("[a](docs/A.md)\n")},
		}
		files[test.name] = &fstest.MapFile{Data: []byte(test.breach)}
		if got := checkFiles(t, files); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
		files[test.name] = &fstest.MapFile{Data: []byte(test.fixed)}
		if got := checkFiles(t, files); got != "" {
			t.Errorf("fixed: %s", got)
		}
	}
}

func TestTotal(t *testing.T) {
	files := fstest.MapFS{}
	for i := range maxTotalWords/maxPageWords + 1 {
		files[string(rune('a'+i))+".md"] = &fstest.MapFile{Data: []byte(strings.Repeat("word. ", maxPageWords))}
	}
	if got, want := checkFiles(t, files), "*.md:1: total: all pages together have 46500 words; maximum 45000"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	delete(files, "a.md")
	if got := checkFiles(t, files); got != "" {
		t.Error(got)
	}
}

func checkFiles(t *testing.T, files fstest.MapFS) string {
	var paths []string
	for name := range files {
		paths = append(paths, name)
	}
	findings, err := check(files, paths)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range findings {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}
