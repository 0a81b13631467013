package witness

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
)

// sold is the witness of a program.
func sold() *Witness {
	w := &Witness{
		Schedule: "v1:shop:b2:s1:1.2", Verdict: verdict.Broken, Why: "must return no row, and does: SELECT * FROM items WHERE stock < 0", Program: "shop", Watch: []string{"stock", "who"},
		Steps: []Step{
			{Buyer: 1, Command: "SELECT stock < 1 & x FROM items", Result: "1", Server: "mysql", Token: "1", Name: "SELECT", Watched: []string{"1", "nobody"}},
			{Buyer: 0, Command: "(all leases expire)", Token: "expire", Name: "expire", Watched: []string{"1"}},
			{Buyer: 2, Command: "UPDATE items", Server: "mysql", Token: "2", Name: "UPDATE", Watched: []string{"-1", "b"}},
		},
		Outcomes: []Outcome{{Buyer: 1, Answer: "200 bought"}, {Buyer: 2, Answer: "409 sold out"}},
		Findings: []Finding{{Query: "SELECT * FROM items WHERE stock < 0", Columns: []string{"id", "stock"}}},
	}
	for range 10 {
		w.Findings[0].Rows = append(w.Findings[0].Rows, []string{"007", "-1"})
	}
	return w
}

// TestProgram: each format shows the user's watched values instead of stock and records, and the result of a rule's
// query below the verdict.
func TestProgram(t *testing.T) {
	w := sold()
	d := Document{Buyers: 2, Broken: Found{Witness: w, Replay: "shop explore --app shop.yaml --replay " + w.Schedule}, Data: w}
	for format, wants := range map[string][]string{
		"text": {
			"│ step │ buyer 1                              │ buyer 2      │ stock │ who    │",
			"│    1 │ SELECT stock < 1 & x FROM items -> 1 │              │     1 │ nobody │",
			"broken: must return no row, and does: SELECT * FROM items WHERE stock < 0\n┌",
			"│ 007 │    -1 │", "and 2 more\nbuyer 1: 200 bought, buyer 2: 409 sold out\nagain: shop explore",
		},
		"mermaid": {"Note over buyer-1,buyer-2: stock 1, who nobody\n", "Note over buyer-1,buyer-2: broken: must return no row, and does: SELECT * FROM items<br/>WHERE stock < 0\n    Note over buyer-1,buyer-2: id = 007, stock = -1\n", "and 2 more"},
		"html":    {"<th>stock</th><th>who</th></tr>", `<td class="n">-1</td><td class="n">b</td></tr>`, "must return no row, and does: <code>SELECT * FROM items WHERE stock &lt; 0</code>", "<tr><td>007</td><td>-1</td></tr>"},
		"json":    {`"command": "SELECT stock < 1 & x FROM items"`, `"token": "expire"`, `"watch": [`, `"rows": [`},
	} {
		f, _ := FormatNamed(format)
		var out strings.Builder
		require.NoError(t, f.Write(&out, d))
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s has no %q:\n%s", format, want, &out)
			}
		}
		if said := strings.Count(strings.NewReplacer("&lt;", "<", "<br/>", " ").Replace(out.String()), "SELECT * FROM items WHERE stock < 0"); said != 1 && format != "json" {
			t.Errorf("%s has the query %d times:\n%s", format, said, &out)
		}
		if strings.Contains(out.String(), "records") || format == "json" && strings.Contains(out.String(), `"stock":`) {
			t.Errorf("%s has stock or records:\n%s", format, &out)
		}
	}
}

// TestProgramWatchesNothing: without a watch query, no values are shown.
func TestProgramWatchesNothing(t *testing.T) {
	w := sold()
	w.Watch, w.Findings = nil, nil
	var text, diagram strings.Builder
	require.NoError(t, w.Text(&text, 2))
	require.NoError(t, w.Mermaid(&diagram, 2))
	if strings.Contains(text.String(), "nobody") || strings.Contains(diagram.String(), "buyer-2: \n") || strings.Contains(diagram.String(), "records") {
		t.Errorf("%s\n%s", &text, &diagram)
	}
}

// TestMermaidChange: commands share an arrow until a watched value changes, even before the first values are shown. A
// step without values does not hide a change.
func TestMermaidChange(t *testing.T) {
	w := sold()
	w.Steps = nil
	for i, stock := range []string{"1", "", "0", "0"} {
		s := Step{Buyer: 1, Command: "command " + string(rune('a'+i)), Server: "mysql"}
		if stock != "" {
			s.Watched = []string{stock}
		}
		w.Steps = append(w.Steps, s)
	}
	var out strings.Builder
	require.NoError(t, w.Mermaid(&out, 2))
	const want = "buyer-1->>mysql: command a<br/>command b<br/>command c\n    Note over buyer-1,buyer-2: stock 0\n    buyer-1->>mysql: command d\n    Note over buyer-1,buyer-2: broken"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%s\nhas no\n%s", &out, want)
	}
}

// TestOwnJSON: the JSON of a strategy's witness has no fields of programs.
func TestOwnJSON(t *testing.T) {
	w := &Witness{Schedule: "s", Steps: []Step{{Buyer: 1, Command: "a <b>", Stock: 1}}, Verdict: verdict.Holds, Why: "w", Outcomes: []Outcome{{Buyer: 1, Answer: "sold"}}}
	const want = `{"schedule":"s","steps":[{"buyer":1,"command":"a <b>","result":"","stock":1,"records":0,"server":""}],"verdict":"holds","why":"w","outcomes":[{"buyer":1,"told":"sold"}]}`
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(w); err != nil || out.String() != want+"\n" {
		t.Errorf("%v\n%s\n%s", err, &out, want)
	}
}
