package gates

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A Poller is a command that the program sent while it served no buyer.
type Poller struct {
	Server  string  `json:"server"`
	Text    string  `json:"text"`
	Times   int     `json:"times"`
	EveryMS float64 `json:"every_ms"` // median time until the same instance sends it again; 0: no instance sent it twice
}

// Period returns how often the command comes, for example "every 200ms".
func (p Poller) Period() string {
	every, unit := time.Duration(p.EveryMS*float64(time.Millisecond)), time.Millisecond
	if every == 0 {
		return "once"
	}
	if every > 10*time.Second {
		unit = time.Second
	}
	return "every " + every.Round(unit).String()
}

// Seen is a command that waited at a gate, which holds it until the explorer releases it.
type Seen struct {
	Server string `json:"server"`
	Text   string `json:"text"`
	Result string `json:"result"`
}

// IgnoreLine returns the line of oversell.yaml with these entries.
func IgnoreLine(entries []string) string {
	var all []string
	for _, entry := range entries {
		if !plainName.MatchString(strings.ToLower(entry)) {
			entry = "'" + strings.ReplaceAll(entry, "'", "''") + "'"
		}
		all = append(all, entry)
	}
	return fmt.Sprintf("ignore: [ %s ]", strings.Join(all, ", "))
}

// plainName matches a table name that needs no quotes.
var plainName = regexp.MustCompile(`^[a-z_]\w*$`)
