package report_test

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/require"
)

func document() report.Document {
	return report.Document{
		Command: "shop try", Title: "A title", Lead: "2 things on <one> engine", Took: 1500 * time.Millisecond, Started: time.Unix(0, 0),
		Sums:   []report.Sum{{Count: 1, What: "as promised", Status: report.Holds}, {Count: 1, What: "contradict", Status: report.Contradicts}},
		Alarm:  "the <power> went",
		Tables: []report.Table{{Columns: []report.Column{{Name: "what"}, {Name: "n", Numbers: true}}, Rows: [][]report.Cell{{{Text: "a|b", Code: true}, {Text: "7", Status: report.Void, Case: "s-one"}}}, Legend: true, Note: "A note."}},
		Notes:  []string{"Left out: *this*."},
		Groups: []report.Group{{Heading: "Wrong"}, {Heading: "Right", Brief: true, Columns: [3]string{"suite", "name", "seen"}}, {Heading: "Empty"}},
		Cases: []report.Case{
			{Group: 1, Suite: "s", Name: "two", Title: "s under two", Word: "holds", Status: report.Holds, Promise: "holds", Seen: "all went well", Took: time.Second},
			{
				Group: 0, Suite: "s", Name: "one", Title: "s under one", Word: "oversold", Status: report.Contradicts, Promise: "holds", Seen: "2 <sold> of 1\x00", Command: "shop again",
				Small: []string{"Stocked 1."}, Details: []report.Detail{{Text: "step 1\n", Mermaid: "sequenceDiagram\n", Summary: "as text"}, {File: "/tmp/x/picture.html", Summary: "why"}},
			},
			{Group: 0, Suite: "r", Name: "one", Title: "r under one", Word: "inconclusive", Status: report.Void, Seen: "nothing"},
		},
		Value: map[string]string{"a": "<b>"},
	}
}

func write(t *testing.T, ending string) string {
	t.Helper()
	format, err := report.ByEnding("x" + ending)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, format.Write(&b, document()))
	return b.String()
}

// TestFormats checks what each format must and must not show of one document.
func TestFormats(t *testing.T) {
	t.Parallel()
	for ending, c := range map[string]struct{ want, never []string }{
		".json": {[]string{`"a": "<b>"`}, []string{"title"}},
		".xml": {
			[]string{`tests="4" failures="1" errors="2" time="1.500"`, `<testsuite name="s" tests="2" failures="1" errors="0"`, `classname="try.s"`, "promised holds, seen oversold", "shop again", "sequenceDiagram", "went", "2 <sold> of 1\uFFFD", `name="unfinished"`},
			[]string{"\x00"},
		},
		".md": {
			[]string{"# A title\n\n2 things on &lt;one> engine, 1.5s: **1 as promised, 1 contradict**. Run on 1970-01-01.\n", "| what | n |\n|---|---:|\n| `a\\|b` | **? 7** |", "`!` contradicts", "Left out: \\*this\\*.", "## Wrong\n\n### s under one: oversold\n\nPromised holds. 2 &lt;sold>", "    shop again\n\n```mermaid\nsequenceDiagram\n```\n", "| `s` | two | all went well |"},
			[]string{"## Empty", "<sold>"},
		},
		".html": {
			[]string{`<a class="void" href="#s-one">7</a>`, `id="s-one"`, `id="s-two"`, `id="r-one"`, "2 &lt;sold&gt; of 1", "the &lt;power&gt; went", "<pre>step 1\n</pre>", "Stocked 1.", "picture.html"},
			[]string{"<sold>", "<power>", "src=", "http", "Empty"},
		},
	} {
		text := write(t, ending)
		for _, want := range c.want {
			expect.Contains(t, text, want, ending)
		}
		for _, never := range c.never {
			if strings.Contains(text, never) {
				t.Errorf("%s has %q:\n%s", ending, never, text)
			}
		}
	}
	for _, f := range report.Formats() {
		d := document()
		d.Tables = nil
		var b strings.Builder
		if err := f.Write(&b, d); err != nil || strings.TrimSpace(b.String()) == "" {
			t.Errorf("%s writes nothing of a document without tables (%v): a format must show its cases and their details too", f.Ending, err)
		}
	}
	if !json.Valid([]byte(write(t, ".json"))) {
		t.Error("the JSON is none")
	}
	expect.NoError(t, xml.Unmarshal([]byte(write(t, ".xml")), new(struct{ XMLName xml.Name })), "the XML is none")
}

// TestByEnding: endings are recognized in upper and lower case. An unknown one gives an error that
// lists the endings.
func TestByEnding(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"a.md": ".md", "a.b.JSON": ".json", "/x.y/z.Html": ".html", "r.xml": ".xml"} {
		if f, err := report.ByEnding(path); err != nil || f.Ending != want {
			t.Errorf("%s: %s, %v; want %s", path, f.Ending, err, want)
		}
	}
	for _, path := range []string{"", "md", "a.pdf", "x.md/y", "x.json.", "-"} {
		if _, err := report.ByEnding(path); err == nil || !strings.Contains(err.Error(), report.Endings()) {
			t.Errorf("%q: %v, want an error with %s", path, err, report.Endings())
		}
	}
}

// TestCheck: files that cannot be written are reported, and nothing is changed.
func TestCheck(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	md, err := report.ByEnding("x.md")
	require.NoError(t, err)
	file := func(path string) report.File { return report.File{Flag: "report", Path: path, Format: md} }
	ok := filepath.Join(folder, "x.md")
	for name, c := range map[string]struct {
		files  []report.File
		others map[string]string
		want   string // "" for no error
	}{
		"new":            {[]report.File{file(ok)}, nil, ""},
		"two":            {[]report.File{file(ok), file(ok + "2")}, nil, ""},
		"the same twice": {[]report.File{file(ok), file(filepath.Join(folder, "..", filepath.Base(folder), "x.md"))}, nil, "--report names "},
		"taken":          {[]report.File{file(ok)}, map[string]string{"history": ok}, "--history and --report"},
		"no folder":      {[]report.File{file(filepath.Join(folder, "no", "x.md"))}, nil, "no such"},
		"a folder":       {[]report.File{file(folder)}, nil, "is a directory"},
		"the terminal":   {[]report.File{file("-")}, nil, ""},
	} {
		err := report.Check(c.files, c.others)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSave: each file is written completely, and an error in one does not affect the others.
func TestSave(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	md, _ := report.ByEnding("x.md")
	page, _ := report.ByEnding("x.html")
	good := filepath.Join(folder, "x.html")
	var stdout strings.Builder
	err := report.Save([]report.File{
		{Flag: "report", Path: filepath.Join(folder, "no", "x.md"), Format: md}, {Flag: "report", Path: good, Format: page}, {Flag: "markdown", Path: "-", Format: md},
	}, document(), &stdout)
	if err == nil || !strings.Contains(err.Error(), "--report") {
		t.Errorf("%v, want the one that failed", err)
	}
	if text, err := os.ReadFile(good); err != nil || !strings.Contains(string(text), "</html>") {
		t.Errorf("%v, %q", err, text)
	}
	if !strings.HasPrefix(stdout.String(), "# A title") {
		t.Errorf("printed %q", stdout.String())
	}
	rel, err := filepath.Rel(folder, "/tmp/x/picture.html")
	if text, _ := os.ReadFile(good); err != nil || !strings.Contains(string(text), `href="`+filepath.ToSlash(rel)+`"`) {
		t.Errorf("the page does not link from where it lies: want %s", rel)
	}
}
