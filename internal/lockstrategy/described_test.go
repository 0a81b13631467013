package lockstrategy_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/require"
)

//go:generate go test -run "TestSQLSent|TestPostgresSent" -update .
//go:generate go test -run TestDescribed -update .

// TestDescribed compares catalogue.json with the comments of the strategies. With -update it writes
// the file.
func TestDescribed(t *testing.T) {
	all := map[string]map[string]string{}
	for _, entry := range lockstrategy.All() {
		for _, script := range entry.Scripts {
			if script.Name == "" || script.Role == "" {
				t.Errorf("%s: a script has no name or no role: %+v", entry.Name, script)
			}
		}
		all[entry.Name] = textsOf(t, entry.Name)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	require.NoError(t, encoder.Encode(all))
	golden.Compare(t, "catalogue.json", text.String())
}

// keys maps the words in a comment to the JSON keys of the texts.
var keys = map[string]string{
	"Summary": "summary", "Guarantees": "guarantees", "Breaks when": "breaks_when", "How it breaks": "how_it_breaks",
	"Cost": "cost", "Source": "source", "Notes": "notes",
}

func textsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	path := strings.ReplaceAll(name, "-", "_") + ".go"
	require.NoError(t, expect.ErrorOf(os.Stat(path)))
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	texts := map[string]string{}
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			readList(t, path, d.Doc.Text(), texts)
		}
	}
	for _, label := range []string{"Summary", "Guarantees", "Breaks when", "Cost", "Source"} {
		if texts[keys[label]] == "" {
			t.Errorf("%s: no type has a comment with %q in its list", path, "- "+label+":")
		}
	}
	return texts
}

func readList(t *testing.T, path, comment string, texts map[string]string) {
	t.Helper()
	_, list, _ := strings.Cut("\n"+comment, "\n  - ")
	if list == "" {
		return
	}
	for _, item := range strings.Split(list, "\n  - ") {
		label, text, _ := strings.Cut(strings.Join(strings.Fields(item), " "), ": ")
		if keys[label] == "" || texts[keys[label]] != "" {
			t.Errorf("%s: %q is no text of a strategy, or there twice", path, label)
		}
		texts[keys[label]] = text
	}
}
