package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestSentences checks old sentences of this project and their rewrites. A sentence without a rule
// shows what a rule leaves alone.
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

// TestFiles checks whole projects, each with one breach, and the same project without it.
func TestFiles(t *testing.T) {
	const missing = "docs" + "/b.md" // in two parts, since the command reads this file too
	long := strings.Repeat("word. ", maxPageWords+1)
	for _, test := range []struct {
		name  string
		want  string
		files map[string]string // with the breach
		fixed map[string]string // the files that differ without it
	}{
		{
			"comment", "a.go:4: word: A COMMIT that nobody answers is unknown.",
			map[string]string{"a.go": "// Package a is short.\npackage a\n\n// A COMMIT that nobody answers is unknown.\n//\n//\tnobody is code\nvar a int\n"},
			map[string]string{"a.go": "// Package a is short.\npackage a\n\n// A COMMIT without an answer is unknown.\nvar a = `nobody`\n"},
		},
		{
			"field", "a.go:4: subject: what the buyers have been told",
			map[string]string{"a.go": "package a\n\ntype a struct {\n\tb int // what the buyers have been told\n}\n"},
			map[string]string{"a.go": "package a\n\ntype a struct {\n\tb int // the answers so far\n}\n"},
		},
		{
			"block comment", "a.go:4: word: Tries in vain.",
			map[string]string{"a.go": "package a\n\n/* A retry.\nTries in vain. */\nvar a int\n"},
			map[string]string{"a.go": "package a\n\n/* A retry.\nIt fails again. */\nvar a int\n"},
		},
		{
			"directive and output", "a_test.go:6: subject: what runs",
			map[string]string{"a_test.go": "package a\n\n//go:generate nobody\n\nfunc Example() {\n\t// what runs\n\t// Output: nobody\n}\n"},
			map[string]string{"a_test.go": "package a\n\n//go:generate nobody\n\nfunc Example() {\n\t// Output: nobody\n}\n"},
		},
		{
			"list in a comment", "a.go:4: subject: who waits is let go",
			map[string]string{"a.go": "package a\n\n// A list:\n//   - who waits\n//     is let go\nvar a int\n"},
			map[string]string{"a.go": "package a\n\n// A list:\n//   - the buyers that\n//     are released\nvar a int\n"},
		},
		{
			"paragraph", "README.md:3: subject: Who is late is refused.",
			map[string]string{"README.md": "# What a page contains\n\nWho is late\nis refused.\n\n> Who is quoted is not checked.\n\n    who is code\n"},
			map[string]string{"README.md": "# What a page contains\n\nThe late buyer\nis refused.\n"},
		},
		{
			"table cell", "README.md:3: word: waits in vain",
			map[string]string{"README.md": "| what it is | b |\n|---|---|\n| waits in vain | `in vain` |\n"},
			map[string]string{"README.md": "| what it is | b |\n|---|---|\n| waits | `in vain` |\n"},
		},
		{
			"columns", "README.md:1: columns: the table has more than 6 columns",
			map[string]string{"README.md": "|a|b|c|d|e|f|g|\n|-|-|-|-|-|-|-|\n"},
			map[string]string{"README.md": "|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n"},
		},
		{
			"page", "README.md:1: page: 1501 words; maximum 1500",
			map[string]string{"README.md": long},
			map[string]string{"README.md": long[len("word. "):]},
		},
		{
			"readme", "README.md:1: readme: 101 lines; maximum 100",
			map[string]string{"README.md": strings.Repeat("a.\n", maxReadmeLines+1)},
			map[string]string{"README.md": strings.Repeat("a.\n", maxReadmeLines)},
		},
		{
			"unlinked", "docs/A.md:1: unlinked: no other page links to this page",
			map[string]string{"README.md": "a\n", "docs/A.md": "[itself](A.md)\n"},
			map[string]string{"README.md": "[a](docs/A.md)\n"},
		},
		{
			"file", "README.md:2: link: docs/B.md does not exist",
			map[string]string{"README.md": "[a](docs/A.md),\n[b](docs/B.md)\n", "docs/A.md": "a\n"},
			map[string]string{"README.md": "[a](docs/A.md), [a folder](docs/), [a site](https://example.com/docs/B.md)\n"},
		},
		{
			"anchor", "README.md:1: link: docs/A.md#missing does not exist",
			map[string]string{"README.md": "[a](docs/A.md#missing)\n", "docs/A.md": "# Some `code`, twice\n\n# Some code, twice\n\n<a id=\"own\"></a>\n"},
			map[string]string{"README.md": "[a](docs/A.md#some-code-twice) [b](docs/A.md#some-code-twice-1) [c](docs/A.md#own)\n"},
		},
		{
			"picture", "README.md:1: link: a.svg does not exist",
			map[string]string{"README.md": "<picture><img alt=\"a\" src=\"a.svg\"></picture>\n"},
			map[string]string{"README.md": "<picture><img alt=\"a\" src=\"b.svg\"></picture>\n", "b.svg": ""},
		},
		{
			"alternative text", "README.md:3: alt: the picture has no alternative text",
			map[string]string{"README.md": "a\n\n![](a.svg)\n", "a.svg": ""},
			map[string]string{"README.md": "a\n\n![a](a.svg)\n"},
		},
		{
			"alternative text in HTML", "README.md:1: alt: the picture has no alternative text",
			map[string]string{"README.md": "<img src=\"a.svg\" alt=\"\">\n", "a.svg": ""},
			map[string]string{"README.md": "<img src=\"a.svg\" alt=\"a\">\n"},
		},
		{
			"mention", "Makefile:2: link: " + missing + " does not exist",
			map[string]string{"Makefile": "a:\n\tcat " + missing + " docs/NAME.md\n"},
			map[string]string{"Makefile": "a:\n\tcat docs/NAME.md other/" + missing + "\n"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := fstest.MapFS{}
			add := func(more map[string]string) {
				for name, text := range more {
					files[name] = &fstest.MapFile{Data: []byte(text)}
				}
			}
			add(test.files)
			if got := checkFiles(t, files); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			add(test.fixed)
			if got := checkFiles(t, files); got != "" {
				t.Errorf("fixed: %s", got)
			}
		})
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
