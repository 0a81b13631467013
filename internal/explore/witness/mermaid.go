package witness

import (
	"fmt"
	"io"
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

// Mermaid writes a witness as a sequence diagram. Successive commands of one buyer at one server
// share an arrow, unless a watched value changes between them.
func (w *Witness) Mermaid(out io.Writer, buyers int) error {
	var b strings.Builder
	b.WriteString("sequenceDiagram\n")
	for i := range buyers {
		fmt.Fprintf(&b, "    participant B%d as buyer %d\n", i+1, i+1)
	}
	seen := map[string]bool{}
	for _, s := range w.Steps {
		if s.Server != "" && s.Buyer != 0 && !seen[s.Server] {
			seen[s.Server] = true
			fmt.Fprintf(&b, "    participant %s\n", named(participant(s.Server), serverName(s.Server)))
		}
	}
	shown, arrow := "", ""
	var commands []string
	for i, s := range w.Steps {
		switch {
		case s.Buyer == 0:
			fmt.Fprintf(&b, "    Note over B1,B%d: %s\n", buyers, escape(strings.Trim(s.Command, "()")))
		case s.Server == "":
			fmt.Fprintf(&b, "    Note over B%d: %s\n", s.Buyer, escape(strings.Trim(s.Command, "()")))
		default:
			arrow = fmt.Sprintf("B%d->>%s", s.Buyer, participant(s.Server))
			commands = append(commands, escape(withResult(s)))
		}
		now, last := w.standing(s), i == len(w.Steps)-1
		if commands != nil {
			if !last && s.Note == "" && (now == shown || shown == "") && w.Steps[i+1].Buyer == s.Buyer && w.Steps[i+1].Server == s.Server {
				continue
			}
			fmt.Fprintf(&b, "    %s: %s\n", arrow, strings.Join(commands, "<br/>"))
			commands = nil
		}
		if s.Note != "" {
			fmt.Fprintf(&b, "    Note right of B%d: %s\n", s.Buyer, escape(s.Note))
		}
		if now != shown {
			fmt.Fprintf(&b, "    Note over B1,B%d: %s\n", buyers, escape(now))
			shown = now
		}
	}
	if len(w.Findings) == 0 {
		fmt.Fprintf(&b, "    Note over B1,B%d: %s: %s\n", buyers, w.Verdict, escape(w.Why))
	}
	for _, f := range w.Findings {
		fmt.Fprintf(&b, "    Note over B1,B%d: %s: %s%s\n", buyers, w.Verdict, returns, escape(f.Query))
		for _, row := range f.Shown() {
			fmt.Fprintf(&b, "    Note over B1,B%d: %s\n", buyers, escape(labelled(f.Columns, row, " = ")))
		}
		if more := f.More(); more != "" {
			fmt.Fprintf(&b, "    Note over B1,B%d: %s\n", buyers, more)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// standing returns the values after a step in one line.
func (w *Witness) standing(s Step) string { return labelled(w.Columns(), w.Values(s), " ") }

// labelled returns the existing values, each after its column.
func labelled(columns, values []string, is string) string {
	var all []string
	for i, v := range values {
		if v != "" && i < len(columns) {
			all = append(all, columns[i]+is+v)
		}
	}
	return strings.Join(all, ", ")
}

// withResult returns a command and its result, unless that says only that one row was written.
func withResult(s Step) string {
	switch s.Result {
	case "", "1 row", "id=N":
		return brief(s.Command)
	}
	return brief(s.Command) + " -> " + s.Result
}

// named declares a participant, with its name unless the two are equal.
func named(id, name string) string {
	if id == name {
		return id
	}
	return id + " as " + name
}

func participant(server string) string { return strings.ReplaceAll(server, "-", "") }

func serverName(server string) string {
	if server == "sql" {
		return "database"
	}
	return server
}

// escape: a semicolon ends a line in Mermaid, and # begins an entity.
func escape(s string) string {
	return strings.NewReplacer("#", "#35;", ";", "#59;", "\n", " ").Replace(s)
}
