package play

import (
	"strings"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Position is everything that a player sees, as the servers report it.
type Position struct {
	Config   Config         `json:"config"`
	Buyers   []Buyer        `json:"buyers"` // buyer 1 is the first
	Choices  []Choice       `json:"choices"`
	Stock    int64          `json:"stock"`   // committed, as another connection reads it
	Records  int64          `json:"records"` // committed purchases
	Sold     int64          `json:"sold"`    // units in these purchases
	Keys     []Key          `json:"keys"`    // the keys in Redis
	Steps    []explore.Step `json:"steps"`   // steps so far, in the form in which the explorer prints a violation
	Tokens   []string       `json:"tokens"`  // the chosen tokens
	Switches int            `json:"switches"`
	End      *End           `json:"end"` // null: the schedule goes on
}

// A Buyer is one column of the board.
type Buyer struct {
	Buyer  int       `json:"buyer"`
	State  State     `json:"state"`
	Next   []Command `json:"next"`   // the commands that the buyer is about to send; several if it asks several servers at once
	Read   string    `json:"read"`   // the result of its last SELECT or GET; "" before the first
	Waits  string    `json:"waits"`  // the reason for its wait; may be empty
	For    []int     `json:"for"`    // the buyers it waits for, if known
	Open   bool      `json:"open"`   // whether it has an open transaction
	Memory bool      `json:"memory"` // whether it holds a lock in memory
	Answer string    `json:"answer"` // its answer, when it is done
}

// A State is the state of a buyer.
type State string

const (
	Ready   State = "ready"   // at least one of its commands can be sent
	Waiting State = "waiting" // waits for another buyer, for time, or for an event
	Done    State = "done"    // has its answer
	Crashed State = "crashed" // crashed; it never continues
)

// A Command is a command of a buyer that the game holds back until the player chooses it.
type Command struct {
	Token  string `json:"token"`  // the argument of Game.Move, if the buyer is Ready
	Text   string `json:"text"`   // SQL statement or Redis command, with its values
	Server string `json:"server"` // "sql", "redis", "redlock-1" ..., "process"
	Ready  bool   `json:"ready"`
}

// A Choice is a possible next step: a buyer's command, or an event.
type Choice struct {
	Token string        `json:"token"`
	Buyer int           `json:"buyer"` // 0: an event that concerns no single buyer
	Event explore.Event `json:"event"` // "" for commands
	Text  string        `json:"text"`
}

// A Key is a key in Redis.
type Key struct {
	Server string  `json:"server"`
	Name   string  `json:"name"`
	Value  string  `json:"value"`
	Left   float64 `json:"left"`  // remaining share of its lease, from 0 to 1; 0: no expiry
	Buyer  int     `json:"buyer"` // the buyer that has set it; 0: unknown
}

// An End is the end of a schedule.
type End struct {
	Verdict  verdict.Verdict   `json:"verdict"`
	Why      string            `json:"why"`
	Broken   bool              `json:"broken"`  // whether the verdict is a violation
	Foreign  bool              `json:"foreign"` // whether a buyer has released another buyer's lock
	Outcomes []explore.Outcome `json:"outcomes"`
	Replay   string            `json:"replay"`  // the command that replays the schedule
	Text     string            `json:"text"`    // the sequence diagram for a terminal
	Mermaid  string            `json:"mermaid"` // the sequence diagram for Mermaid
	HTML     string            `json:"html"`    // the sequence diagram as a self-contained page
}

// Reached reports whether the schedule has ended as a goal requires: with that verdict or, if the goal is "",
// with any violation. The goal verdict.Unlocked requires that a buyer has released another buyer's lock.
func (e *End) Reached(goal verdict.Verdict) bool {
	return e != nil && reached(goal, e.Verdict, e.Foreign)
}

func reached(goal, v verdict.Verdict, foreign bool) bool {
	switch goal {
	case "":
		return v != verdict.Holds
	case verdict.Unlocked:
		return foreign
	}
	return v == goal
}

func newPosition(c Config, choices []schedule.Choice, v explore.View, tokens []string) Position {
	p := Position{
		Config: c, Buyers: []Buyer{}, Choices: []Choice{}, Keys: []Key{}, Steps: v.Steps, Tokens: append([]string{}, tokens...),
		Stock: v.Stock, Records: v.Records, Sold: v.Sold, Switches: explore.Switches(tokens),
	}
	if p.Steps == nil {
		p.Steps = []explore.Step{}
	}
	for _, s := range v.Buyers {
		p.Buyers = append(p.Buyers, newBuyer(s))
	}
	for i, choice := range choices {
		p.Choices = append(p.Choices, Choice{Token: choice.Token, Buyer: choice.Buyer, Event: choice.Event, Text: v.Texts[i]})
	}
	for _, k := range v.Keys {
		p.Keys = append(p.Keys, Key{Server: k.Server, Name: k.Name, Value: k.Value, Left: k.Left.Seconds() / schedule.Forever.Seconds(), Buyer: k.Buyer})
	}
	return p
}

func newBuyer(s schedule.Standing) Buyer {
	b := Buyer{
		Buyer: s.Buyer, State: Ready, Next: []Command{}, Read: s.Read, Waits: s.Waits, For: append([]int{}, s.For...),
		Open: s.Open, Memory: s.Memory, Answer: s.Answer,
	}
	switch {
	case s.Crashed:
		b.State = Crashed
	case s.Over:
		b.State = Done
	case s.Waits != "":
		b.State = Waiting
	}
	for _, c := range s.Gate {
		b.Next = append(b.Next, Command{Token: c.Token, Text: c.Text, Server: c.Server, Ready: c.Ready})
	}
	return b
}

func newEnd(c Config, e explore.Ended, w *explore.Witness) (*End, error) {
	end := &End{
		Verdict: w.Verdict, Why: w.Why, Broken: w.Broken(), Foreign: e.Foreign, Outcomes: w.Outcomes,
		Replay: explore.Replay(c.Strategy, "", w),
	}
	d := witness.Document{
		Title: "shop play " + c.Strategy, Summary: "One schedule, its steps chosen by hand.", Buyers: c.Buyers,
		Broken: witness.Found{Witness: w, Replay: end.Replay}, Data: w,
	}
	for name, to := range map[string]*string{"text": &end.Text, "mermaid": &end.Mermaid, "html": &end.HTML} {
		format, _ := witness.FormatNamed(name)
		var out strings.Builder
		if err := format.Write(&out, d); err != nil {
			return nil, err
		}
		*to = out.String()
	}
	return end, nil
}
