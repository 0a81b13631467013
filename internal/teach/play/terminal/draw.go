package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
)

// Words and signs mark everything that colours mark, so no information depends on colour.
const (
	bold    = "\x1b[1m"
	inverse = "\x1b[7m"
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	plainly = "\x1b[m"
)

// A frame is the content of the screen.
type frame struct {
	level         *level.Level // nil: a game without a goal
	at            play.Position
	cursor        int // index among the choices
	scroll        int // steps of the history below the screen
	width, height int
	message       string
	busy          string // the word under way; "": none
}

// lines returns the screen: its head, the buyers or the end, as much history as fits, a message,
// and the keys.
func (f *frame) lines() []string {
	head, middle, foot := f.head(), f.buyers(), f.foot()
	if f.at.End != nil {
		middle = f.end()
	}
	room := f.height - len(head) - len(middle) - len(foot)
	if room < 0 { // on a small screen the task is dropped first
		head = head[:1]
		room = f.height - len(head) - len(middle) - len(foot)
	}
	all := append(head, middle...)
	all = append(all, f.history(max(room, 0))...)
	all = append(all[:min(len(all), max(0, f.height-len(foot)))], foot...)
	for i, line := range all {
		all[i] = ansi.Truncate(line, f.width, "…")
	}
	return all[max(0, len(all)-f.height):]
}

// wrap breaks a text into lines.
func (f *frame) wrap(text string) []string {
	return strings.Split(ansi.Wrap(text, max(f.width, 20), ""), "\n")
}

func (f *frame) head() []string {
	c := crowd(f.at.Config)
	if f.level == nil {
		return append([]string{bold + "You are the scheduler" + plainly}, f.wrap(c)...)
	}
	l := f.level
	all := append([]string{bold + l.Title + plainly}, f.wrap(l.Task)...)
	return append(append(all, f.wrap("Goal: "+l.Wanted()+". Par: "+l.Shown()+".")...), f.wrap(c)...)
}

// buyers draws the numbers, the keys in Redis, the buyers side by side, and the events.
func (f *frame) buyers() []string {
	all := append(f.numbers(), "")
	var columns [][]string
	width := f.column()
	for _, b := range f.at.Buyers {
		columns = append(columns, f.buyer(b, width))
	}
	all = append(all, sideBySide(columns, width)...)
	var events []string
	for i, c := range f.at.Choices {
		if c.Event != "" {
			events = append(events, f.mark(i, c.Token))
		}
	}
	if events != nil {
		all = append(all, "events  "+strings.Join(events, "  "))
		if c := f.chosen(); c.Event != "" {
			all = append(all, "        "+c.Token+": "+c.Text)
		}
	}
	return append(all, "")
}

// numbers draws the shop's numbers and the keys in Redis.
func (f *frame) numbers() []string {
	all := []string{fmt.Sprintf("%sstock %d   records %d%s   step %d   switches %d", bold, f.at.Stock, f.at.Records, plainly, len(f.at.Tokens), f.at.Switches)}
	for _, k := range f.at.Keys {
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

// column returns the width of a buyer's column.
func (f *frame) column() int {
	n := max(len(f.at.Buyers), 1)
	return max((f.width-2*(n-1))/n, 12)
}

// chosen returns the choice under the cursor.
func (f *frame) chosen() play.Choice {
	if f.cursor < len(f.at.Choices) {
		return f.at.Choices[f.cursor]
	}
	return play.Choice{}
}

// move moves the cursor and, at the end of a schedule, the history.
func (f *frame) move(by int) {
	if f.at.End != nil {
		f.scroll = min(max(f.scroll-by, 0), max(0, len(f.at.Steps)-1))
		return
	}
	if n := len(f.at.Choices); n > 0 {
		f.cursor = (f.cursor + by + n) % n
	}
}

// next moves the cursor to the next choice that satisfies is.
func (f *frame) next(is func(play.Choice) bool) bool {
	for i := range f.at.Choices {
		at := (f.cursor + 1 + i) % len(f.at.Choices)
		if is(f.at.Choices[at]) {
			f.cursor = at
			return true
		}
	}
	return false
}

// mark draws a choice, and the cursor if it is on it.
func (f *frame) mark(i int, text string) string {
	if i == f.cursor {
		return inverse + "> " + text + plainly
	}
	return "  " + text
}

// tallest is the maximum number of lines of a command.
const tallest = 3

// buyer draws one column.
func (f *frame) buyer(b play.Buyer, width int) []string {
	parts := standing(b)
	column := []string{bold + parts[0] + plainly}
	for _, p := range parts[1:] {
		column = append(column, strings.Split(ansi.Wrap(p, width, ""), "\n")...)
	}
	for i, c := range f.at.Choices {
		if c.Event != "" || c.Buyer != b.Buyer {
			continue
		}
		lines := strings.Split(ansi.Wrap(c.Token+": "+c.Text, width-2, ""), "\n")
		if len(lines) > tallest {
			lines = append(lines[:tallest-1], ansi.Truncate(lines[tallest-1], width-4, "")+" …")
		}
		for n, line := range lines {
			switch {
			case i != f.cursor:
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

// sideBySide joins columns.
func sideBySide(columns [][]string, width int) (rows []string) {
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

// end draws the end of the schedule.
func (f *frame) end() []string {
	e := f.at.End
	colour := green
	if e.Broken {
		colour = red
	}
	var told []string
	for _, o := range e.Outcomes {
		told = append(told, fmt.Sprintf("buyer %d: %s", o.Buyer, o.Answer))
	}
	all := append(append(f.numbers(), ""), f.wrap(bold+colour+string(e.Verdict)+plainly+": "+e.Why)...)
	return append(append(all, strings.Join(told, ", ")), f.wrap("again: "+e.Replay)...)
}

// counted is the heading of the numbers after each step of the history.
const counted = "stock records"

// short shortens a command but keeps its answer.
func short(line string, width int) string {
	if i := strings.Index(line, " -> "); i > 0 && ansi.StringWidth(line) > width && ansi.StringWidth(line[i:]) < width/2 {
		return ansi.Truncate(line[:i], width-ansi.StringWidth(line[i:]), "…") + line[i:]
	}
	return line
}

// history draws the sequence diagram: a step in each row, a buyer in each column, the last steps at
// the bottom.
func (f *frame) history(room int) (rows []string) {
	if room < 2 || len(f.at.Steps) == 0 {
		return make([]string, room)
	}
	width := max((f.width-4-len(counted))/max(len(f.at.Buyers), 1)-2, 8)
	title := "    "
	for _, b := range f.at.Buyers {
		title += pad(fmt.Sprintf("buyer %d", b.Buyer), width) + "  "
	}
	rows = append(rows, bold+title+counted+plainly)
	last := len(f.at.Steps) - f.scroll
	last = max(last, min(room-1, len(f.at.Steps)))
	for i := max(0, last-room+1); i < last; i++ {
		step := f.at.Steps[i]
		row := fmt.Sprintf("%3d ", i+1)
		if step.Buyer == 0 {
			row += pad(step.Line(), (width+2)*len(f.at.Buyers)) // no buyer's step
		} else {
			for _, b := range f.at.Buyers {
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

// pad returns the text in exactly this width.
func pad(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// foot draws the message and the keys.
func (f *frame) foot() []string {
	var all []string
	switch {
	case f.busy != "":
		all = f.wrap(f.busy)
	case f.message != "":
		all = f.wrap(f.message)
	}
	keys := "1-9 go  arrows+Enter  e event  u undo  r again  h hint  p prove  ? keys  q quit"
	if f.at.End != nil {
		keys = "arrows scroll  u undo  r again  h hint  p prove  ? keys  q quit"
	}
	return append(all, f.wrap(keys)...)
}
