package witness

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// columnWidth is the width of a buyer's column in characters. Two such columns, the stock and the records fit into
// a terminal of 120 characters.
const columnWidth = 44

// writeText prints the head line and each witness, with the command that replays it.
func writeText(out io.Writer, d Document) error {
	if d.Head != "" {
		if _, err := fmt.Fprintln(out, d.Head); err != nil {
			return err
		}
	}
	for _, note := range d.Notes {
		if _, err := fmt.Fprintln(out, folded(note)); err != nil {
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

// A note of more than longNote characters is wrapped into lines of foldedWidth characters.
const longNote, foldedWidth = 240, 120

// folded returns a note, wrapped if it is long. The later lines are indented.
func folded(note string) string {
	if len(note) <= longNote {
		return note
	}
	return strings.ReplaceAll(text.WrapSoft(note, foldedWidth), "\n", "\n  ")
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

// Text prints a witness, its verdict and the answers. The table has a column for each buyer and a row for each step; in
// the short form, a row may hold several steps.
func (w *Witness) Text(out io.Writer, buyers int) error {
	t := newTable()
	header := table.Row{"step"}
	configs := []table.ColumnConfig{{Number: 1, Align: text.AlignRight}}
	for i := range buyers {
		header = append(header, fmt.Sprintf("buyer %d", i+1))
		configs = append(configs, table.ColumnConfig{Number: i + 2, WidthMax: columnWidth, WidthMaxEnforcer: wrapLines})
	}
	for _, name := range w.Columns() {
		header = append(header, name)
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(header)
	for _, r := range w.PeopleRows() {
		row := table.Row{r.Number()}
		for b := range buyers {
			cell := ""
			if r.Buyer() == b+1 || r.Buyer() == 0 && b == 0 {
				cell = strings.Join(w.lines(r), "\n")
			}
			row = append(row, cell)
		}
		t.AppendRow(append(row, cells(w.Values(r.last()))...))
	}
	why := w.Why + "\n"
	if len(w.Findings) > 0 { // each finding below prints its own line
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
	text := w.Answers()
	if left := w.Omission(); left != "" {
		text = left + "\n" + text
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

func (w *Witness) lines(r Row) (all []string) {
	for _, s := range r.Steps {
		all = append(all, w.line(s))
	}
	return all
}

// wrapLines wraps each line of a cell separately. text.WrapSoft alone would join the lines.
func wrapLines(cell string, width int) string {
	lines := strings.Split(cell, "\n")
	for i, line := range lines {
		lines[i] = text.WrapSoft(line, width)
	}
	return strings.Join(lines, "\n")
}

func newTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.SeparateRows = false
	t.SetStyle(style)
	return t
}

// Line returns a step in one line: the command and its answer.
func (s Step) Line() string { return (&Witness{}).line(s) }

func (w *Witness) line(s Step) string {
	text := w.brief(s)
	if s.Result != "" {
		text += " -> " + s.Result
	}
	if s.Note != "" {
		text += " (" + s.Note + ")"
	}
	return text
}

// oneOfAKind lists the servers whose name is not shown next to a command.
var oneOfAKind = map[string]bool{"": true, "sql": true, "redis": true, "mysql": true, "postgres": true}

// brief returns a command. If there are several servers of a kind, the server's name precedes it.
func (w *Witness) brief(s Step) string {
	command := s.Command
	if !w.Verbose {
		command = brief(command)
	}
	if oneOfAKind[s.Server] || strings.HasPrefix(s.Command, "(") && s.Result == "" {
		return command
	}
	return s.Server + ": " + command
}

// brief omits the columns of an INSERT, which are irrelevant here.
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
