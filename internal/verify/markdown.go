package verify

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/verdict"
)

// maxMarkdown is what GitHub takes as a step's summary
// (docs.github.com, Workflow commands, "Step isolation and limits").
const maxMarkdown = 1 << 20

// Markdown writes the matrix and the evidence of each cell: contradictions first,
// then what breaks, and what holds in a line each. Where it would go beyond
// maxMarkdown it leaves out diagrams first, then whole cells, and says so.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	broken, void := r.Broken()
	b.WriteString("# Which lock may be trusted when\n\n")
	fmt.Fprintf(&b, "%d cells on the %s engine, %s: **%d as promised, %d contradict, %d inconclusive**. Run on %s.\n\n",
		len(r.Cells), r.Engine, (time.Duration(r.DurationMS) * time.Millisecond).Round(time.Second),
		len(r.Cells)-len(broken)-len(void), len(broken), len(void), r.Started.UTC().Format("2006-01-02"))
	if r.Unfinished != "" {
		fmt.Fprintf(&b, "**The run is unfinished, and cells are missing: %s.**\n\n", escape(r.Unfinished))
	}
	strategies, faults := order(r.Cells)
	b.WriteString("| strategy |")
	for _, f := range faults {
		fmt.Fprintf(&b, " %s |", f)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(faults)) + "\n")
	for _, s := range strategies {
		fmt.Fprintf(&b, "| `%s` |", s)
		for _, f := range faults {
			word := ""
			if c := r.cell(s, f); c != nil {
				word = c.word()
				if !c.OK {
					word = "**" + word + "**"
				}
			}
			fmt.Fprintf(&b, " %s |", word)
		}
		b.WriteString("\n")
	}
	b.WriteString("\nAn empty cell was not played: nothing of the strategy is struck by the fault, it sells too much without it (explorer), or it is left out, as said below. `!` contradicts its promise, `?` has shown nothing. A fault strikes a holder that is in its section, and the explorer's events come at any step: so `setnx-expire` under a crash and `redis-decr` under a Redis that forgets come to something else in the explorer's columns.\n")
	for _, c := range r.Cells {
		if c.NoPromise != "" {
			fmt.Fprintf(&b, "\nNo promise is made for `%s` under %s: %s.\n", c.Strategy, c.Fault, escape(c.NoPromise))
		}
	}
	for _, left := range r.LeftOut {
		fmt.Fprintf(&b, "\nLeft out: %s.\n", left)
	}
	b.WriteString("\n## Evidence\n")
	r.evidence(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// evidence writes each cell, as far as there is room.
func (r Report) evidence(b *strings.Builder) {
	const (
		noDiagram = "\nIts diagram is left away: a step's summary takes 1 MiB.\n"
		noMore    = "\nThe rest is left away: a step's summary takes 1 MiB.\n"
		room      = maxMarkdown - len(noDiagram) - len(noMore)
	)
	broken, void := r.Broken()
	cells := append(broken, void...)
	for _, c := range r.Cells {
		if c.OK && c.Verdict != verdict.Holds {
			cells = append(cells, c)
		}
	}
	for _, c := range cells {
		text := fmt.Sprintf("\n### %s under %s: %s\n\nPromised %s. %s.\n\n    %s\n", c.Strategy, c.Fault, c.Verdict, orNothing(c.Promise), escape(c.Evidence), c.Replay)
		if b.Len()+len(text) > room {
			b.WriteString(noMore)
			return
		}
		b.WriteString(text)
		if c.Witness == nil {
			continue
		}
		diagram := "\n```mermaid\n" + c.Witness.Mermaid + "```\n" // GitHub and GitLab draw it
		if b.Len()+len(diagram) > room {
			diagram = noDiagram
		}
		b.WriteString(diagram)
	}
	held := "\n## Holds, as promised or without a promise\n\n| strategy | under | what was seen |\n|---|---|---|\n"
	for _, c := range r.Cells {
		if !c.OK || c.Verdict != verdict.Holds {
			continue
		}
		held += fmt.Sprintf("| `%s` | %s | %s |\n", c.Strategy, c.Fault, escape(c.Evidence))
		if b.Len()+len(held) > room {
			b.WriteString(noMore)
			return
		}
		b.WriteString(held)
		held = ""
	}
}

// escape keeps a text of errors from being Markdown.
func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", "|", "\\|", "*", "\\*", "_", "\\_", "`", "'").Replace(text)
}
