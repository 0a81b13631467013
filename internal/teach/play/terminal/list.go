package terminal

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/teach/play/results"
)

// A Listed is a level in the form in which `shop play --levels --json` prints it.
type Listed struct {
	Name    string          `json:"name"`
	Title   string          `json:"title"`
	Task    string          `json:"task"`
	Wanted  string          `json:"wanted"`
	Config  play.Config     `json:"config"`
	Minutes int             `json:"minutes"`
	Par     string          `json:"par"`  // "?" if it would tell how to win
	Best    *results.Result `json:"best"` // null: not won yet
}

// Levels returns all levels with the player's best results.
func Levels(best map[string]results.Result) (all []Listed) {
	for _, l := range level.All() {
		listed := Listed{Name: l.Name, Title: l.Title, Task: l.Task, Wanted: l.Wanted(), Config: l.Config, Minutes: l.Minutes, Par: l.Shown()}
		if r, won := best[l.Name]; won {
			listed.Par, listed.Best = l.Par().String(), &r
		}
		all = append(all, listed)
	}
	return all
}

// List writes the levels as a table.
func List(out io.Writer, best map[string]results.Result) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"", "level", "title", "min", "par", "your best"})
	for i, l := range Levels(best) {
		yours := ""
		if l.Best != nil {
			yours = l.Best.String()
		}
		t.AppendRow(table.Row{i + 1, l.Name, l.Title, l.Minutes, l.Par, yours})
	}
	_, err := fmt.Fprintln(out, t.Render())
	return err
}
