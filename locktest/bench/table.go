package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/oversell/oversell/locktest"
)

// A table has a row for each lock and a column for each cell.
type table struct {
	names   []string
	cells   []cell
	figures map[string]map[cell]locktest.Figures
	period  time.Duration // duration of a run
}

func (c cell) String() string {
	section := "empty section"
	if c.section > 0 {
		section = c.section.String() + " section"
	}
	if c.processes == 1 {
		return "1 process, " + section
	}
	return fmt.Sprintf("%d processes, %s", c.processes, section)
}

func (t table) words(f locktest.Figures) string {
	return fmt.Sprintf("%.0f of %.0f/s · %s · %s · %s",
		f.HandoversPerSecond, f.GrantsPerSecond, t.wait(f.P99Wait), t.wait(f.LongestWait), commands(f.CommandsPerHandover))
}

// wait formats a longest wait. It marks one that reached the length of a run, since the real wait may have
// been longer.
func (t table) wait(d time.Duration) string {
	if d >= t.period*95/100 {
		return "> " + short(t.period)
	}
	return short(d)
}

func commands(n float64) string {
	if n < 100 {
		return fmt.Sprintf("%.1f", n)
	}
	return fmt.Sprintf("%.0f", n)
}

// short rounds a duration to about two digits, since a benchmark is no more precise.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
}

func (t table) markdown(out io.Writer) error {
	var b strings.Builder
	b.WriteString("| lock |")
	for _, c := range t.cells {
		fmt.Fprintf(&b, " %s |", c)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.cells)) + "\n")
	for _, name := range t.names {
		fmt.Fprintf(&b, "| %s |", name)
		for _, c := range t.cells {
			fmt.Fprintf(&b, " %s |", t.words(t.figures[name][c]))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (t table) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "lock\tprocesses\tsection\thand-overs/s\tgrants/s\tp99 wait\tlongest wait\tcommands/hand-over")
	for _, name := range t.names {
		for _, c := range t.cells {
			f := t.figures[name][c]
			fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%.0f\t%s\t%s\t%s\n", name, c.processes, c.section,
				f.HandoversPerSecond, f.GrantsPerSecond, t.wait(f.P99Wait), t.wait(f.LongestWait), commands(f.CommandsPerHandover))
		}
	}
	return w.Flush()
}
