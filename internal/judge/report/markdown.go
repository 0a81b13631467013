package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// markdownFormat is for the summary of a CI step, and for a page in a repository.
func markdownFormat() Format {
	return Format{Ending: ".md", What: "Markdown, for a CI step's summary", Write: writeMarkdown}
}

// maxMarkdown is GitHub's limit on the summary of a CI step, in bytes (docs.github.com, Workflow commands,
// "Step isolation and limits").
const maxMarkdown = 1 << 20

// markdownRoom is the limit minus the space for two notes about omissions.
const (
	noDiagram    = "\nThe diagram is left out: a step's summary is limited to 1 MiB.\n"
	noMore       = "\nThe rest is left out: a step's summary is limited to 1 MiB.\n"
	markdownRoom = maxMarkdown - len(noDiagram) - len(noMore)
)

// writeMarkdown shortens a document that is longer than maxMarkdown. It leaves out diagrams first, then whole
// cases. A note says so.
func writeMarkdown(w io.Writer, d Document) error {
	b, after := &markdown{room: markdownRoom}, ""
	b.head(d)
	if p := d.Page; p != nil {
		b.WriteString(p.Legend)
		b.table(p.Table)
		after = p.After
		b.room -= len(after)
	} else {
		for _, t := range d.Tables {
			b.table(t)
		}
		for _, note := range d.Notes {
			b.WriteString("\n" + escape(note) + "\n")
		}
	}
	b.groups(d)
	b.WriteString(after)
	_, err := io.WriteString(w, b.String())
	return err
}

type markdown struct {
	strings.Builder
	room int // maximum length, in bytes
}

func (b *markdown) head(d Document) {
	fmt.Fprintf(b, "# %s\n\n", escape(d.Title))
	if d.Page != nil {
		b.WriteString(escape(d.Page.Intro) + "\n\n")
	}
	b.WriteString(escape(d.Lead))
	if d.Took > 0 {
		fmt.Fprintf(b, ", %s", rounded(d.Took))
	}
	var sums []string
	for _, s := range d.Sums {
		sums = append(sums, fmt.Sprintf("%d %s", s.Count, s.What))
	}
	if sums != nil {
		fmt.Fprintf(b, ": **%s**", strings.Join(sums, ", "))
	}
	b.WriteString(".")
	if !d.Started.IsZero() {
		fmt.Fprintf(b, " Run on %s.", d.Started.UTC().Format("2006-01-02"))
	}
	b.WriteString("\n")
	if d.Alarm != "" {
		fmt.Fprintf(b, "\n**The run is unfinished, and cells are missing: %s.**\n", escape(d.Alarm))
	}
}

func (b *markdown) table(t Table) {
	var heads, lines []string
	for _, c := range t.Columns {
		heads = append(heads, escape(c.Name))
		line := "---"
		if c.Numbers {
			line = "---:"
		}
		lines = append(lines, line)
	}
	fmt.Fprintf(b, "\n| %s |\n|%s|\n", strings.Join(heads, " | "), strings.Join(lines, "|"))
	for _, row := range t.Rows {
		b.WriteString("|")
		for _, c := range row {
			fmt.Fprintf(b, " %s |", cellText(c))
		}
		b.WriteString("\n")
	}
	if t.Note != "" {
		b.WriteString("\n" + escape(t.Note) + "\n")
	}
	if t.Legend {
		b.WriteString("\n`!` contradicts its promise, `?` has shown nothing.\n")
	}
}

func cellText(c Cell) string {
	switch {
	case c.Code && c.Text != "":
		return "`" + strings.NewReplacer("`", "'", "|", "\\|", ", ", "`, `").Replace(c.Text) + "`"
	case c.Status == Breaks:
		return "**" + escape(c.Text) + "**"
	case c.Status == Contradicts:
		return "**! " + escape(c.Text) + "**"
	case c.Status == Void || c.Status == Failed:
		return "**? " + escape(c.Text) + "**"
	}
	return escape(c.Text)
}

func (b *markdown) groups(d Document) {
	for i, g := range d.Groups {
		cases := d.in(i)
		if len(cases) == 0 || g.OffPage && d.Page != nil {
			continue
		}
		head := "\n## " + escape(g.Heading) + "\n"
		if g.Brief {
			head += fmt.Sprintf("\n| %s |\n|---|---|---|\n", strings.Join(g.Columns[:], " | "))
		}
		for _, c := range cases {
			text := head + section(c)
			if g.Brief {
				text = head + fmt.Sprintf("| `%s` | %s | %s |\n", c.Suite, escape(c.Name), escape(c.Seen))
			}
			head = ""
			if b.Len()+len(text) > b.room {
				b.WriteString(noMore)
				return
			}
			b.WriteString(text)
			if !g.Brief {
				b.diagrams(c)
			}
		}
	}
}

func section(c Case) string {
	title := c.Title
	if c.Word != "" {
		title += ": " + c.Word
	}
	text := fmt.Sprintf("\n### %s\n\n", escape(title))
	if c.Promise != "" {
		text += fmt.Sprintf("Promised %s. ", c.Promise)
	}
	for i, fact := range strings.Split(c.Seen, "; ") {
		if i > 0 {
			text += ".\n"
		}
		_, first := utf8.DecodeRuneInString(fact)
		text += escape(strings.ToUpper(fact[:first]) + fact[first:])
	}
	text += ".\n"
	if c.Command != "" {
		text += "\n    " + c.Command + "\n"
	}
	return text
}

func (b *markdown) diagrams(c Case) {
	for _, d := range c.Details {
		text := ""
		switch {
		case d.Mermaid != "": // GitHub and GitLab draw the diagram
			text = "\n```mermaid\n" + d.Mermaid + "```\n"
		case d.Text != "":
			text = "\n```\n" + strings.TrimSuffix(d.Text, "\n") + "\n```\n"
		}
		if b.Len()+len(text) > b.room {
			text = noDiagram
		}
		b.WriteString(text)
	}
}

// rounded rounds a duration for display: to whole seconds from 10 s on.
func rounded(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", "|", "\\|", "*", "\\*", "_", "\\_", "`", "'").Replace(text)
}
