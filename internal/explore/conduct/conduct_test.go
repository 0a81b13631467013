package conduct_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/conduct"
	"github.com/oversell/oversell/internal/explore/schedule"
)

type move = conduct.Move[*int]

// two represents two buyers, each with a number of commands.
type two struct {
	left  map[int]int
	done  []string
	ended int
	fails bool
}

func (s *two) Begin(context.Context) error { return nil }
func (s *two) Over() bool                  { return true }

func (s *two) Moves(context.Context) (all []move, _ error) {
	for id := 1; id <= 2; id++ {
		if s.left[id] > 0 {
			all = append(all, move{Choice: schedule.Choice{Token: string(rune('0' + id)), Buyer: id}, Command: &id})
		}
	}
	return all, nil
}

func (s *two) Describe(context.Context, *schedule.Point, []move) {}

func (s *two) Do(ctx context.Context, m move) error {
	s.done = append(s.done, m.Token)
	if m.Make != nil {
		return m.Make(ctx)
	}
	s.left[*m.Command]--
	if m.Second != nil {
		s.left[*m.Second]--
	}
	return nil
}

func (s *two) End(_ context.Context, _ *schedule.Ended, err error) error {
	if s.ended++; s.fails {
		return errors.Join(err, errors.New("the end fails"))
	}
	return err
}

// TestRun checks how schedules end.
func TestRun(t *testing.T) {
	happens := func(name schedule.Event) conduct.Event[*int] {
		return conduct.Event[*int]{Name: name, Moves: func(context.Context) ([]move, error) {
			return []move{{Choice: schedule.Choice{Token: string(name)}, Make: func(context.Context) error { return nil }}}, nil
		}}
	}
	for _, c := range []struct {
		name   string
		tokens string // an empty token prunes the run
		limits conduct.Limits
		fails  bool
		want   string // "pruned", "cut", "judged", or a part of the error
	}{
		{"to its end", "1 2 1 2", conduct.Limits{}, false, "judged"},
		{"events", "1 expire 2 crash 1 2", conduct.Limits{}, false, "judged"},
		{"an event twice", "1 expire 2 expire", conduct.Limits{}, false, "step 4 of the schedule is expire"},
		{"more events than allowed", "1 expire crash", conduct.Limits{Events: 1}, false, "step 3 of the schedule is crash"},
		{"an event that is not wanted", "forget", conduct.Limits{}, false, "step 1 of the schedule is forget"},
		{"an event at the end", "1 1 2 2 expire", conduct.Limits{}, false, "judged"},
		{"a pair", "1+2 2+1", conduct.Limits{Pairs: true}, false, "judged"},
		{"a pair that is not allowed", "1+2", conduct.Limits{}, false, "step 1 of the schedule is 1+2"},
		{"a pair of one buyer", "1+1", conduct.Limits{Pairs: true}, false, "step 1 of the schedule is 1+1"},
		{"a pair with an event", "1+expire", conduct.Limits{Pairs: true}, false, "step 1 of the schedule is 1+expire"},
		{"a buyer that is done", "1 1 1", conduct.Limits{}, false, "possible: 2 ()"},
		{"pruned", "1 2", conduct.Limits{}, false, "pruned"},
		{"longer than allowed", "1 2 1 2", conduct.Limits{Steps: 3}, false, "cut"},
		{"as long as allowed", "1 2 1 2", conduct.Limits{Steps: 4}, false, "judged"},
		{"its end fails", "1 2 1 2", conduct.Limits{}, true, "the end fails"},
	} {
		if c.limits.Steps == 0 {
			c.limits.Steps = schedule.MaxSteps
		}
		s := &two{left: map[int]int{1: 2, 2: 2}, fails: c.fails}
		tokens := strings.Fields(c.tokens)
		all := []conduct.Event[*int]{happens("expire"), happens("crash"), happens("forget")}
		e, err := conduct.New(s, all, []schedule.Event{"crash", "expire"}, c.limits).Run(t.Context(), func(p *schedule.Point) (string, error) {
			switch {
			case p.AtEnd():
				return schedule.Judge, nil
			case p.Depth == len(tokens):
				return "", nil
			}
			return tokens[p.Depth], nil
		})
		got := "judged"
		switch {
		case err != nil:
			got = err.Error()
		case e.Pruned:
			got = "pruned"
		case e.Cut:
			got = "cut"
		}
		if !strings.Contains(got, c.want) || s.ended != 1 || err == nil && !slices.Equal(e.Tokens, s.done) {
			t.Errorf("%s: %s, want %s; ended %d times; %v, and done was %v", c.name, got, c.want, s.ended, e.Tokens, s.done)
		}
	}
}
