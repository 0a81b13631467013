package witness

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// TestFolded: the text shows the rows of the short form and the number of omitted commands. With Verbose it shows every
// step in full. JSON always contains every step.
func TestFolded(t *testing.T) {
	t.Parallel()
	w := sold()
	before, err := json.Marshal(w)
	require.NoError(t, err)
	w.Steps[0].Whole, w.Steps[0].Result = "SELECT a FROM items WHERE id = 1", "a=long..."
	w.Steps[0].Rows, w.Steps[0].Unseen = [][]Cell{{{"a", "long value"}, {"b", ""}, {"", "7"}}}, 2
	whole := *w
	w.Folded = &Folded{Omitted: map[int]int{2: 40, 1: 1}, Rows: []Row{
		{First: 1, Last: 7, Steps: []Step{{Buyer: 1, Server: "mysql", Command: "SELECT ... FROM items", Result: "stock=1"}, {Buyer: 1, Server: "mysql", Command: "... 5 more commands", Watched: []string{"8", "x"}}}},
		{First: 8, Last: 8, Steps: w.Steps[2:]},
	}}
	show := func() map[string]string {
		all := map[string]string{}
		for _, name := range []string{"text", "mermaid", "html"} {
			f, _ := FormatNamed(name)
			var out strings.Builder
			require.NoError(t, f.Write(&out, Document{Buyers: 2, Broken: Found{Witness: w}, Data: w}))
			all[name] = out.String()
		}
		return all
	}
	const left = "left out: 41 commands (1 of buyer 1, 40 of buyer 2) on tables and keys that neither the broken rule nor another buyer"
	all := show()
	for format, want := range map[string]string{
		"text":    "│  1-7 │ SELECT ... FROM items -> stock=1 │              │     8 │ x   │\n│      │ ... 5 more commands              │",
		"mermaid": "buyer-1->>mysql: SELECT ... FROM items -> stock=1<br/>... 5 more commands\n",
		"html":    `<td class="n">1-7</td><td><code>SELECT ... FROM items</code><br><span class="result">&rarr; stock=1</span><br><code>... 5 more commands</code></td>`,
	} {
		if unbroken := strings.ReplaceAll(all[format], "<br/>", " "); !strings.Contains(all[format], want) || !strings.Contains(unbroken, left) {
			t.Errorf("%s has no %q or no %q:\n%s", format, want, left, all[format])
		}
	}
	w.Verbose = true
	all = show()
	for format, text := range all {
		if !strings.Contains(text, "SELECT a FROM items WHERE id = 1") || strings.Contains(text, "left out") || strings.Contains(text, "more commands") {
			t.Errorf("%s:\n%s", format, text)
		}
	}
	if rows := "a='long value' b='' 7; ... 2 more rows"; !strings.Contains(all["mermaid"], escape(rows)) {
		t.Errorf("no %q:\n%s", rows, all["mermaid"])
	}
	whole.Steps[0].Result = "1"
	if after, err := json.Marshal(&whole); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s\n%s", err, after, before)
	}
}

// TestVerboseOwn: for a strategy, Verbose shows every column of an INSERT.
func TestVerboseOwn(t *testing.T) {
	t.Parallel()
	w := &Witness{Steps: []Step{{Buyer: 1, Server: "sql", Command: "INSERT INTO purchase_history (a) VALUES (1)"}}}
	for _, verbose := range []bool{false, true} {
		w.Verbose = verbose
		var text, diagram strings.Builder
		require.NoError(t, w.Text(&text, 2))
		require.NoError(t, w.Mermaid(&diagram, 2))
		for _, out := range []string{text.String(), diagram.String()} {
			if strings.Contains(out, "VALUES (1)") != verbose {
				t.Errorf("verbose %t:\n%s", verbose, out)
			}
		}
	}
}
