package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/oversell/oversell/internal/teach/play"
)

// What is drawn is marked by words and signs, too: colour alone says nothing.
const (
	bold    = "\x1b[1m"
	inverse = "\x1b[7m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	plainly = "\x1b[m"
)

// lines are the screen: its head, the buyers or the end, the history in the room that is left,
// what there is to say, and the keys.
func (m *screen) lines() []string {
	head, middle, foot := m.head(), m.buyers(), m.foot()
	if m.at.End != nil {
		middle = m.end()
	}
	room := m.height - len(head) - len(middle) - len(foot)
	if room < 0 { // the task is the first thing that one knows
		head = head[:1]
		room = m.height - len(head) - len(middle) - len(foot)
	}
	all := append(head, middle...)
	all = append(all, m.history(max(room, 0))...)
	all = append(all[:min(len(all), max(0, m.height-len(foot)))], foot...)
	for i, line := range all {
		all[i] = ansi.Truncate(line, m.width, "…")
	}
	return all[max(0, len(all)-m.height):]
}

// wrap breaks a text into lines.
func (m *screen) wrap(text string) []string {
	return strings.Split(ansi.Wrap(text, max(m.width, 20), ""), "\n")
}

func (m *screen) head() []string {
	c := crowd(m.at.Config)
	if m.s.Level == nil {
		return append([]string{bold + "You are the scheduler" + plainly}, m.wrap(c)...)
	}
	l := m.s.Level
	all := append([]string{bold + l.Title + plainly}, m.wrap(l.Task)...)
	return append(append(all, m.wrap("Goal: "+l.Wanted()+". Par: "+l.Shown()+".")...), m.wrap(c)...)
}

// buyers are the numbers, what Redis has, the buyers side by side, and the events.
func (m *screen) buyers() []string {
	all := append(m.numbers(), "")
	var columns [][]string
	width := m.column()
	for _, b := range m.at.Buyers {
		columns = append(columns, m.buyer(b, width))
	}
	all = append(all, beside(columns, width)...)
	var events []string
	for i, c := range m.at.Choices {
		if c.Event != "" {
			events = append(events, m.mark(i, c.Token))
		}
	}
	if events != nil {
		all = append(all, "events  "+strings.Join(events, "  "))
		if c := m.chosen(); c.Event != "" {
			all = append(all, "        "+c.Token+": "+c.Text)
		}
	}
	return append(all, "")
}

// numbers are those of the shop, and what Redis has.
func (m *screen) numbers() []string {
	all := []string{fmt.Sprintf("%sstock %d   records %d%s   step %d   switches %d", bold, m.at.Stock, m.at.Records, plainly, len(m.at.Tokens), m.at.Switches)}
	for _, k := range m.at.Keys {
		lease := ""
		if k.Left > 0 {
			full := int(k.Left*10 + 0.5)
			lease = " [" + strings.Repeat("#", full) + strings.Repeat(".", 10-min(full, 10)) + "]"
		}
		whose := ""
		if k.Buyer > 0 {
			whose = fmt.Sprintf(" of buyer %d", k.Buyer)
		}
		all = append(all, fmt.Sprintf("%s%s%s  %s = %s", k.Server, whose, lease, k.Name, k.Value))
	}
	return all
}

// column is how wide a buyer's is.
func (m *screen) column() int {
	n := max(len(m.at.Buyers), 1)
	return max((m.width-2*(n-1))/n, 12)
}

// chosen is where the cursor is.
func (m *screen) chosen() play.Choice {
	if m.cursor < len(m.at.Choices) {
		return m.at.Choices[m.cursor]
	}
	return play.Choice{}
}

// mark shows a choice, and whether the cursor is on it.
func (m *screen) mark(i int, text string) string {
	if i == m.cursor {
		return inverse + "> " + text + plainly
	}
	return "  " + text
}

// tallest is how many lines of a command are shown.
const tallest = 3

// buyer is one column.
func (m *screen) buyer(b play.Buyer, width int) []string {
	parts := standing(b)
	column := []string{bold + parts[0] + plainly}
	for _, p := range parts[1:] {
		column = append(column, strings.Split(ansi.Wrap(p, width, ""), "\n")...)
	}
	for i, c := range m.at.Choices {
		if c.Event != "" || c.Buyer != b.Buyer {
			continue
		}
		lines := strings.Split(ansi.Wrap(c.Token+": "+c.Text, width-2, ""), "\n")
		if len(lines) > tallest {
			lines = append(lines[:tallest-1], ansi.Truncate(lines[tallest-1], width-4, "")+" …")
		}
		for n, line := range lines {
			switch {
			case i != m.cursor:
				column = append(column, "  "+line)
			case n == 0:
				column = append(column, inverse+"> "+line+plainly)
			default:
				column = append(column, inverse+"  "+line+plainly)
			}
		}
	}
	return column
}

// beside puts columns next to each other.
func beside(columns [][]string, width int) (rows []string) {
	for i := 0; ; i++ {
		row, some := "", false
		for n, c := range columns {
			cell := ""
			if i < len(c) {
				cell, some = ansi.Truncate(c[i], width, "…"), true
			}
			if n < len(columns)-1 {
				cell += strings.Repeat(" ", max(0, width+2-ansi.StringWidth(cell)))
			}
			row += cell
		}
		if !some {
			return rows
		}
		rows = append(rows, row)
	}
}

// end is what the schedule has come to.
func (m *screen) end() []string {
	e := m.at.End
	colour := green
	if e.Broken {
		colour = red
	}
	var told []string
	for _, o := range e.Outcomes {
		told = append(told, fmt.Sprintf("buyer %d: %s", o.Buyer, o.Answer))
	}
	all := append(append(m.numbers(), ""), m.wrap(bold+colour+string(e.Verdict)+plainly+": "+e.Why)...)
	return append(append(all, strings.Join(told, ", ")), m.wrap("again: "+e.Replay)...)
}

// counted are the numbers after each step of the history.
const counted = "stock records"

// short leaves out the end of a command and not its answer.
func short(line string, width int) string {
	if i := strings.Index(line, " -> "); i > 0 && ansi.StringWidth(line) > width && ansi.StringWidth(line[i:]) < width/2 {
		return ansi.Truncate(line[:i], width-ansi.StringWidth(line[i:]), "…") + line[i:]
	}
	return line
}

// history is the sequence diagram: a step a row, a buyer a column, the last ones above the
// bottom.
func (m *screen) history(room int) (rows []string) {
	if room < 2 || len(m.at.Steps) == 0 {
		return make([]string, room)
	}
	width := max((m.width-4-len(counted))/max(len(m.at.Buyers), 1)-2, 8)
	title := "    "
	for _, b := range m.at.Buyers {
		title += pad(fmt.Sprintf("buyer %d", b.Buyer), width) + "  "
	}
	rows = append(rows, bold+title+counted+plainly)
	last := len(m.at.Steps) - m.scroll
	last = max(last, min(room-1, len(m.at.Steps)))
	for i := max(0, last-room+1); i < last; i++ {
		step := m.at.Steps[i]
		row := fmt.Sprintf("%3d ", i+1)
		if step.Buyer == 0 {
			row += pad(step.Line(), (width+2)*len(m.at.Buyers)) // nobody's doing
		} else {
			for _, b := range m.at.Buyers {
				cell := ""
				if b.Buyer == step.Buyer {
					cell = short(step.Line(), width)
				}
				row += pad(cell, width) + "  "
			}
		}
		rows = append(rows, fmt.Sprintf("%s%5d %7d", row, step.Stock, step.Records))
	}
	for len(rows) < room {
		rows = append(rows, "")
	}
	return rows
}

// pad is a text of just this width.
func pad(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// foot is what there is to say, and the keys.
func (m *screen) foot() []string {
	var all []string
	switch {
	case m.busy != "":
		all = m.wrap(m.busy)
	case m.message != "":
		all = m.wrap(m.message)
	}
	keys := "1-9 go  arrows+Enter  e event  u undo  r again  h hint  p prove  ? keys  q quit"
	if m.at.End != nil {
		keys = "arrows scroll  u undo  r again  h hint  p prove  ? keys  q quit"
	}
	return append(all, m.wrap(keys)...)
}
