package terminal

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/teach/play"
)

const longestLine = 64 << 10

// Plain plays line by line: it reads words and writes positions as text. It is for scripts, screen readers and CI.
// A line may have several words. Plain ends with the input or at "quit".
func (s *Session) Plain(ctx context.Context, in io.Reader, out io.Writer, prompt string) error {
	s.Begin()
	p := &plain{s: s, out: out}
	p.say(s.intro() + "\n\n" + board(s.Game.Position()))
	lines := readLines(ctx, in)
	for {
		p.write(prompt)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l, more := <-lines:
			if !more || l.err != nil {
				return cmp.Or(l.err, p.err)
			}
			for _, said := range strings.Fields(l.text) {
				quit, err := p.do(ctx, said)
				if err != nil || quit || p.err != nil {
					return cmp.Or(err, p.err)
				}
			}
		}
	}
}

// line is a line of the input, or the reason for its end.
type line struct {
	text string
	err  error
}

// readLines reads the input to its end. When ctx ends, the caller need not wait for a line any more. The
// reading goroutine remains, blocked in a read that cannot be cancelled.
func readLines(ctx context.Context, in io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, longestLine)
		send := func(l line) bool {
			select {
			case lines <- l:
				return true
			case <-ctx.Done():
				return false
			}
		}
		for s.Scan() {
			if !send(line{text: s.Text()}) {
				return
			}
		}
		if s.Err() != nil {
			send(line{err: s.Err()})
		}
	}()
	return lines
}

// plain writes the output of a session, and remembers the first error.
type plain struct {
	s   *Session
	out io.Writer
	err error
}

func (p *plain) say(words string) { p.write(words + "\n") }

func (p *plain) write(words string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.out, words)
	}
}

func (p *plain) do(ctx context.Context, word string) (quit bool, err error) {
	before := len(p.s.Game.Position().Steps)
	a, err := p.s.Do(ctx, word)
	if err != nil || a.Quit {
		return a.Quit, err
	}
	if a.Show {
		at := p.s.Game.Position()
		for _, step := range at.Steps[min(before, len(at.Steps)):] {
			who := "  "
			if step.Buyer > 0 {
				who = fmt.Sprintf("  buyer %d: ", step.Buyer)
			}
			p.say(who + step.Line())
		}
		p.say("\n" + board(at))
	}
	if a.Text != "" {
		p.say(a.Text)
	}
	return false, nil
}

func (s *Session) intro() string {
	about := crowd(s.Game.Position().Config)
	if s.Level == nil {
		return about
	}
	l := s.Level
	return fmt.Sprintf("%s: %s (%d min)\n%s\nGoal: %s. Par: %s.\n%s", l.Name, l.Title, l.Minutes, l.Task, l.Wanted(), l.Shown(), about)
}

func crowd(c play.Config) string {
	where := "each a process of its own"
	if c.Shared {
		where = "all in one process"
	}
	text := fmt.Sprintf("%s: %d buyers, %s; stock %d", c.Strategy, c.Buyers, where, c.Stock)
	if c.Units > 1 {
		text += fmt.Sprintf(", %d units each", c.Units)
	}
	if len(c.Events) == 0 {
		return text + "; no events."
	}
	var events []string
	for _, e := range c.Events {
		events = append(events, string(e))
	}
	return text + "; events: " + strings.Join(events, ", ") + "."
}

// board describes a position as text with one fact in each line, for screen readers.
func board(at play.Position) string {
	var b strings.Builder
	fmt.Fprintf(&b, "step %d, switches %d. stock %d, records %d.\n", len(at.Tokens), at.Switches, at.Stock, at.Records)
	for _, k := range at.Keys {
		b.WriteString(key(k) + "\n")
	}
	if at.End != nil {
		b.WriteString("The end:\n" + strings.TrimSuffix(at.End.Text, "\n"))
		return b.String()
	}
	for _, buyer := range at.Buyers {
		b.WriteString(strings.Join(standing(buyer), ". ") + ".\n")
		for _, c := range of(at.Choices, buyer.Buyer) {
			fmt.Fprintf(&b, "  %s: %s\n", c.Token, c.Text)
		}
	}
	for _, c := range at.Choices {
		if c.Event != "" {
			fmt.Fprintf(&b, "  %s: %s\n", c.Token, c.Text)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// standing describes the state of a buyer as a list of phrases.
func standing(b play.Buyer) []string {
	parts := []string{fmt.Sprintf("buyer %d is %s", b.Buyer, b.State)}
	if b.Answer != "" && b.State == play.Done {
		parts[0] += ": " + b.Answer
	}
	if b.Memory {
		parts = append(parts, "holds the lock in memory")
	}
	if b.Open {
		parts = append(parts, "in a transaction")
	}
	if b.Read != "" && b.State != play.Done {
		parts = append(parts, "has read "+b.Read)
	}
	if b.Waits != "" {
		parts = append(parts, "waits"+forBuyers(b.For)+": "+b.Waits)
	}
	return parts
}

func forBuyers(buyers []int) string {
	var names []string
	for _, b := range buyers {
		names = append(names, fmt.Sprint(b))
	}
	if names == nil {
		return ""
	}
	return " for buyer " + strings.Join(names, " and ")
}

func key(k play.Key) string {
	text := fmt.Sprintf("%s has %s = %s", k.Server, k.Name, k.Value)
	if k.Buyer > 0 {
		text += fmt.Sprintf(", of buyer %d", k.Buyer)
	}
	if k.Left > 0 {
		return text + fmt.Sprintf(", lease %.0f %%", 100*k.Left)
	}
	return text
}
