// Package terminal plays the game by typed words, one or more on a line. They come from a terminal, a file or
// a pipe.
//
//	lines -> plain -> Session.Do(word) -> play.Game
package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/teach/play/results"
)

// A Session is one player at one game.
type Session struct {
	Game  *play.Game
	Level *level.Level // nil: a game without a goal
	Keep  func(results.Result) error
	Now   func() time.Time

	begun time.Time
	hints int
	won   bool
}

// A word is a command of the player other than the token of a choice.
type word struct {
	word, key, does string
}

func vocabulary() []word {
	return []word{
		{"undo", "u", "take the last step back"},
		{"restart", "r", "begin again"},
		{"hint", "h", "a hint; each one says more"},
		{"prove", "p", "claim that it cannot be broken: the explorer runs every schedule"},
		{"show", "s", "show the board again"},
		{"help", "?", "this list"},
		{"quit", "q", "end the game"},
	}
}

// Begin starts the clock.
func (s *Session) Begin() { s.begun = s.Now() }

// Won reports whether the level is won.
func (s *Session) Won() bool { return s.won }

// An Answer is the result of a word.
type Answer struct {
	Text string // for the player; may be several lines
	Quit bool
	Show bool // whether to show the board
}

// Do executes a word: the token of a choice, or a command. An unknown word changes nothing. The
// error comes from the game itself.
func (s *Session) Do(ctx context.Context, said string) (Answer, error) {
	for _, w := range vocabulary() {
		if said == w.key {
			said = w.word
		}
	}
	switch said {
	case "undo":
		return s.moved(s.Game.Undo())
	case "restart":
		return s.moved(s.Game.Restart())
	case "hint":
		text, err := s.hint(ctx)
		return Answer{Text: text}, err
	case "prove":
		text, err := s.prove(ctx)
		return Answer{Text: text}, err
	case "show":
		return Answer{Show: true}, nil
	case "help":
		return Answer{Text: help()}, nil
	case "quit":
		return Answer{Quit: true}, nil
	}
	return s.moved(s.Game.Move(said))
}

func (s *Session) moved(at play.Position, err error) (Answer, error) {
	switch {
	case errors.Is(err, play.ErrBadMove):
		return Answer{Text: err.Error()}, nil
	case err != nil:
		return Answer{}, err
	}
	a := Answer{Show: true}
	if s.Level == nil || at.End == nil {
		return a, nil
	}
	if !s.Level.WonBy(at.End) {
		a.Text = "Not won: " + s.Level.Wanted() + ". Take steps back (u), or begin again (r)."
		return a, nil
	}
	a.Text, err = s.win(results.Result{Steps: len(at.Tokens), Switches: at.Switches})
	return a, err
}

func (s *Session) win(r results.Result) (string, error) {
	par := s.Level.Par()
	text := fmt.Sprintf("Won: %s.%s\n%s\nSource: %s%s", r, against(r, par), s.Level.Learned, s.Level.Source, s.after())
	if s.won {
		return text, nil
	}
	s.won = true
	now := s.Now()
	r.Hints, r.Seconds, r.Won = s.hints, int(now.Sub(s.begun).Seconds()), now.UTC().Truncate(time.Second)
	return text, s.Keep(r)
}

// after returns the name of the next level, or "" after the last one.
func (s *Session) after() string {
	names := level.Names()
	if i := slices.Index(names, s.Level.Name); i >= 0 && i+1 < len(names) {
		return "\nNext: shop play --level " + names[i+1]
	}
	return ""
}

// against compares in words a result with the par, the best path. It returns "" if the player won by a claim.
func against(r results.Result, par level.Par) string {
	switch {
	case par.Way == "":
		return ""
	case r.Steps == par.Steps() && r.Switches == par.Switches:
		return " That is par."
	}
	return " Par is " + par.String() + "."
}

// hint returns the next hint. In a game without a level, the explorer computes each hint.
func (s *Session) hint(ctx context.Context) (string, error) {
	if s.Level == nil {
		free := level.Level{}
		a, err := free.Next(ctx, s.Game)
		return "Towards any break, " + a.String() + ".", err
	}
	if !s.won {
		s.hints++
	}
	switch s.hints {
	case 1:
		return "Hint 1 of 3: " + s.Level.Thought, nil
	case 2:
		return "Hint 2 of 3: " + s.Level.Deed, nil
	}
	a, err := s.Level.Next(ctx, s.Game)
	return "Hint 3 of 3: " + a.String() + ".", err
}

// prove checks the claim that the code cannot be broken.
func (s *Session) prove(ctx context.Context) (string, error) {
	p, err := s.Game.Prove(ctx, play.Effort{Budget: level.ProveBudget, Bound: -1}, nil)
	if err != nil {
		return "", err
	}
	text := claimed(p)
	if s.Level == nil || !s.Level.WonByProof(p) {
		return text, nil
	}
	won, err := s.win(results.Result{})
	return text + "\n" + won, err
}

// claimed returns the answer to the claim that the code cannot be broken. If the claim is wrong, the answer
// does not show how to break the code.
func claimed(p play.Proof) string {
	switch {
	case p.Holds:
		return "You are right, it cannot be broken: " + p.Extent + ", none breaks."
	case p.Violations > 0:
		return fmt.Sprintf("It can be broken: of the orders, %s, %d break.", p.Extent, p.Violations)
	case p.Stopped:
		return "Stopped: " + p.Extent + "."
	case p.Empty:
		return "That proves nothing: the events have no effect here."
	}
	return "None was found that breaks, and that is no proof: " + p.Extent + "."
}

func help() string {
	var b strings.Builder
	b.WriteString("A number lets that buyer's command go. Where a buyer has several on the way, the name has a letter: 1a.\nAn event happens by its name.\n")
	for _, w := range vocabulary() {
		fmt.Fprintf(&b, "%-8s %s  %s\n", w.word, w.key, w.does)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func of(choices []play.Choice, buyer int) []play.Choice {
	return slices.DeleteFunc(slices.Clone(choices), func(c play.Choice) bool { return c.Event != "" || c.Buyer != buyer })
}
