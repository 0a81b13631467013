package verify

import (
	"fmt"
	"strings"
)

// A sequence is a witness as a sequence diagram: the first buyer on the left, the other on the
// right, the servers between them, and stock and records next to each step. Its units are those of
// the SVG.
//
//	buyer 1 ──SELECT──▶ database                buyer 2   stock, records
//	                       ◀──────UPDATE────────────
type sequence struct {
	Width, Height, Foot int
	Lines               []lifeline
	Rows                []sequenceRow
}

type lifeline struct {
	X    int
	Name string
}

// A sequenceRow is one step. An event that belongs to no buyer has no arrow and spans the diagram.
type sequenceRow struct {
	Y, From, To    int // of the arrow
	Text, Result   string
	Whole          string // the text in full length
	Note           string
	Event          bool
	TextX          int
	Anchor         string // of the text: the side of its buyer
	Stock, Records int64
	Changed        bool // whether stock or records changed
}

// Measures of the diagram.
const (
	lineGap  = 330 // between two lifelines
	rowGap   = 46
	topRoom  = 44
	sideRoom = 60
	fits     = 100 // characters of a text
)

// draw lays out a witness.
func draw(w *Witness) sequence {
	servers := []string{}
	seen := map[string]bool{}
	for _, s := range w.Steps {
		if s.Buyer > 0 && s.Server != "" && !seen[s.Server] {
			seen[s.Server] = true
			servers = append(servers, s.Server)
		}
	}
	gap := lineGap
	if len(servers) > 2 { // the nodes of a lock
		gap = 2 * lineGap / len(servers)
	}
	var d sequence
	at := map[string]int{}
	for i, name := range append(append([]string{"buyer 1"}, servers...), "buyer 2") {
		at[name] = sideRoom + i*gap
		d.Lines = append(d.Lines, lifeline{at[name], strings.Replace(name, "sql", "database", 1)})
	}
	edge := at["buyer 2"]
	stock, records := int64(1), int64(0)
	for i, s := range w.Steps {
		row := sequenceRow{
			Y: topRoom + (i+1)*rowGap, Text: cut(s.Command), Whole: s.Command, Result: cut(s.Result), Note: s.Note,
			Stock: s.Stock, Records: s.Records, Changed: s.Stock != stock || s.Records != records,
		}
		stock, records = s.Stock, s.Records
		row.TextX, row.Anchor = sideRoom+8, "start"
		if s.Buyer == 2 {
			row.TextX, row.Anchor = edge-8, "end"
		}
		row.From, row.To = at[fmt.Sprintf("buyer %d", max(s.Buyer, 1))], at[s.Server]
		if s.Server == "" || s.Buyer == 0 {
			row.Event, row.Text = true, strings.Trim(s.Command, "()")
		}
		d.Rows = append(d.Rows, row)
	}
	d.Foot = topRoom + (len(w.Steps)+1)*rowGap
	d.Width, d.Height = edge+sideRoom+150, d.Foot+8
	return d
}

// cut shortens a text to fit the diagram. Its tooltip has the full text.
func cut(text string) string {
	if columns, _, insert := strings.Cut(text, " ("); insert && strings.HasPrefix(text, "INSERT INTO") {
		return columns + " ..."
	}
	runes := []rune(text)
	if len(runes) <= fits {
		return text
	}
	return string(runes[:fits]) + " ..."
}
