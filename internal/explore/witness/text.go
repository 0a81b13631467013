package witness

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// columnWidth is the width of a buyer's column. Two of them, the stock and the records fit into a
// terminal of 120.
const columnWidth = 44

// writeText prints the head line and each witness, with the command that runs it
// again.
func writeText(out io.Writer, d Document) error {
	if d.Head != "" {
		if _, err := fmt.Fprintln(out, d.Head); err != nil {
			return err
		}
	}
	for _, note := range d.Notes {
		if _, err := fmt.Fprintln(out, note); err != nil {
			return err
		}
	}
	for _, found := range append([]Found{d.Broken}, d.Others...) {
		if err := found.print(out, d.Buyers); err != nil {
			return err
		}
	}
	return nil
}

func (f Found) print(out io.Writer, buyers int) error {
	if _, err := io.WriteString(out, f.Intro); err != nil || f.Witness == nil {
		return err
	}
	if err := f.Text(out, buyers); err != nil || f.Replay == "" {
		return err
	}
	_, err := fmt.Fprintln(out, "again: "+f.Replay)
	return err
}

// Text prints a witness with one column per buyer and one row per step, followed by stock and records.
func (w *Witness) Text(out io.Writer, buyers int) error {
	t := newTable()
	header := table.Row{"step"}
	configs := []table.ColumnConfig{{Number: 1, Align: text.AlignRight}}
	for i := range buyers {
		header = append(header, fmt.Sprintf("buyer %d", i+1))
		configs = append(configs, table.ColumnConfig{Number: i + 2, WidthMax: columnWidth, WidthMaxEnforcer: text.WrapSoft})
	}
	for _, name := range w.Columns() {
		header = append(header, name)
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(header)
	for i, s := range w.Steps {
		row := table.Row{i + 1}
		for b := range buyers {
			cell := ""
			if s.Buyer == b+1 || s.Buyer == 0 && b == 0 {
				cell = s.Line()
			}
			row = append(row, cell)
		}
		t.AppendRow(append(row, cells(w.Values(s))...))
	}
	why := w.Why + "\n"
	if len(w.Findings) > 0 { // each finding has its own line with its query
		why = ""
	}
	if _, err := fmt.Fprintf(out, "%s\n%s: %s", t.Render(), w.Verdict, why); err != nil {
		return err
	}
	for _, f := range w.Findings {
		if err := f.Text(out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, w.Answers())
	return err
}

func newTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.SeparateRows = false
	t.SetStyle(style)
	return t
}

// Line returns a step in one cell of a table: the command and its answer.
func (s Step) Line() string {
	text := s.brief()
	if s.Result != "" {
		text += " -> " + s.Result
	}
	if s.Note != "" {
		text += " (" + s.Note + ")"
	}
	return text
}

// oneOfAKind are the servers that need no name next to a command.
var oneOfAKind = map[string]bool{"": true, "sql": true, "redis": true, "mysql": true, "postgres": true}

// brief returns the command and, if there are several servers of a kind, its server.
func (s Step) brief() string {
	if oneOfAKind[s.Server] || strings.HasPrefix(s.Command, "(") && s.Result == "" {
		return brief(s.Command)
	}
	return s.Server + ": " + brief(s.Command)
}

// brief leaves out the columns of an INSERT that say nothing here.
func brief(command string) string {
	if strings.HasPrefix(command, "INSERT INTO purchase_history") {
		return "INSERT INTO purchase_history ..."
	}
	return command
}

// Answers returns each buyer's answer in one line.
func (w *Witness) Answers() string {
	var all []string
	for _, o := range w.Outcomes {
		all = append(all, fmt.Sprintf("buyer %d: %s", o.Buyer, o.Answer))
	}
	return strings.Join(all, ", ")
}
