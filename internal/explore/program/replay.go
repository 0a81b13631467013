package program

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore"
)

// A Replay is the value of --replay: a replay string, or a file that --save wrote. It determines the buyers and events,
// unless flags set them, and whether statements are held inside the server.
type Replay struct {
	Buyers  int
	Events  []explore.Event
	Overlap bool
	Fits    func(explore.Config) error
	Saved   *explore.Saved // nil if the value is a replay string
}

// ReadReplay reads its argument: a replay string, or the name of a file.
func ReadReplay(text string) (*Replay, error) {
	line, wrong := explore.ParseSchedule(text)
	if wrong == nil {
		fits := func(config explore.Config) error { return config.FitsLine(line) }
		return &Replay{Buyers: line.Buyers, Events: eventsIn(line.Tokens), Overlap: line.Overlap, Fits: fits}, nil
	}
	if _, err := os.Stat(text); err != nil {
		if strings.HasPrefix(text, "v1:") {
			return nil, fmt.Errorf("--replay: %w", wrong)
		}
		return nil, fmt.Errorf("--replay needs a replay string or a file of --save (got %q)", text)
	}
	saved, err := explore.LoadSaved(text)
	if err != nil {
		return nil, fmt.Errorf("--replay: %w; --save writes one", err)
	}
	fits := func(config explore.Config) error { return config.Fits(saved) }
	return &Replay{Buyers: saved.Buyers, Events: saved.Events, Overlap: saved.Overlap, Fits: fits, Saved: saved}, nil
}

func eventsIn(tokens []string) []explore.Event {
	return slices.DeleteFunc(explore.ProgramEvents(), func(e explore.Event) bool {
		return !slices.ContainsFunc(tokens, func(token string) bool { return strings.HasPrefix(token, string(e)) })
	})
}
