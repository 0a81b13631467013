package witness

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// writeMermaid writes the first witness, or a comment if there is none.
func writeMermaid(out io.Writer, d Document) error {
	var lines []string
	if d.Broken.Witness == nil {
		lines = append(lines, d.Extent+", none breaks")
	}
	for _, line := range append(lines, d.Notes...) {
		if _, err := fmt.Fprintln(out, "%% "+line); err != nil {
			return err
		}
	}
	if d.Broken.Witness == nil {
		return nil
	}
	return d.Broken.Mermaid(out, d.Buyers)
}

// Mermaid writes a witness as a sequence diagram. Consecutive commands of one buyer at one server share an arrow,
// unless a watched value changes between them.
func (w *Witness) Mermaid(out io.Writer, buyers int) error {
	var b strings.Builder
	b.WriteString("sequenceDiagram\n")
	for i := range buyers {
		fmt.Fprintf(&b, "    participant buyer-%d\n", i+1)
	}
	over := func(text string) {
		fmt.Fprintf(&b, "    Note over buyer-1,buyer-%d: %s\n", buyers, note(text))
	}
	known, shown, arrow := "", "", "" // watched values after the last step, and watched values in the last note
	var commands []string
	var steps []Step
	for _, r := range w.PeopleRows() {
		steps = append(steps, r.Steps...)
	}
	for i, s := range steps {
		switch {
		case s.Buyer == 0:
			over(strings.Trim(s.Command, "()"))
		case s.Server == "":
			fmt.Fprintf(&b, "    Note over buyer-%d: %s\n", s.Buyer, note(strings.Trim(s.Command, "()")))
		default:
			arrow = fmt.Sprintf("buyer-%d->>%s", s.Buyer, serverName(s.Server))
			commands = append(commands, escape(w.abridged(s)))
		}
		now := cmp.Or(w.standing(s), known)
		changed := known != "" && now != known
		known = now
		if commands != nil {
			last := i == len(steps)-1
			if !last && s.Note == "" && !changed && steps[i+1].Buyer == s.Buyer && steps[i+1].Server == s.Server {
				continue
			}
			fmt.Fprintf(&b, "    %s: %s\n", arrow, strings.Join(commands, "<br/>"))
			commands = nil
		}
		if s.Note != "" {
			fmt.Fprintf(&b, "    Note right of buyer-%d: %s\n", s.Buyer, note(s.Note))
		}
		if now != shown {
			over(now)
			shown = now
		}
	}
	if len(w.Findings) == 0 {
		over(string(w.Verdict) + ": " + w.Why)
	}
	for _, f := range w.Findings {
		over(string(w.Verdict) + ": " + returns + f.Query)
		for _, row := range f.Shown() {
			over(labelled(f.Columns, row, " = "))
		}
		if more := f.More(); more != "" {
			over(more)
		}
	}
	if left := w.Omission(); left != "" {
		over(left)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// standing returns the watched values after a step in one line.
func (w *Witness) standing(s Step) string { return labelled(w.Columns(), w.Values(s), " ") }

// labelled returns the values that are not empty, each after its column.
func labelled(columns, values []string, is string) string {
	var all []string
	for i, v := range values {
		if v != "" && i < len(columns) {
			all = append(all, columns[i]+is+v)
		}
	}
	return strings.Join(all, ", ")
}

// Statements of the catalogue's strategies whose conditions are irrelevant in a diagram.
var (
	readProduct  = regexp.MustCompile(`^SELECT \* FROM product WHERE name = '[^']*' LIMIT 1`)
	writeProduct = regexp.MustCompile(`^(UPDATE product SET amount = \S+) WHERE id = \d+$`)
)

// abridged returns a command and its result. It omits a result that says only that one row was written.
func (w *Witness) abridged(s Step) string {
	text := s.Command
	if !w.ofProgram() && !w.Verbose {
		text = readProduct.ReplaceAllString(writeProduct.ReplaceAllString(brief(text), "$1"), "SELECT product")
	}
	switch s.Result {
	case "", "1 row", "id=N":
		return text
	}
	return text + " -> " + s.Result
}

func serverName(server string) string {
	if server == "sql" {
		return "database"
	}
	return server
}

// escape escapes the characters that end a line (;) or begin an entity (#) in Mermaid.
func escape(s string) string {
	return strings.NewReplacer("#", "#35;", ";", "#59;", "\n", " ").Replace(s)
}

// noteWidth is the maximum length in bytes of a line in a note, if the words allow it. A viewer cuts longer lines at the
// edge of the picture.
const noteWidth = 60

func note(text string) string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= noteWidth {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "<br/>")
}
