package play

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
)

// Limits of a Config. A terminal has no room for the columns of more buyers.
const (
	MostBuyers = 4
	MostStock  = 8
)

// sold is the product's name, the same as in `shop explore`. A strategy may compute values from the name. So
// with another name, a replay string (the text form of a schedule) could lead to other values.
const sold = "explored"

// A Config describes a game. All fields except Strategy have defaults for their zero value.
type Config struct {
	Strategy string          `json:"strategy"`
	Buyers   int             `json:"buyers"` // 2 to MostBuyers; 0 is 2
	Stock    int64           `json:"stock"`  // units on sale; 0 is 1
	Units    int64           `json:"units"`  // units in each order; 0 is 1
	Events   []explore.Event `json:"events"` // events that the player may trigger, once each
	Shared   bool            `json:"shared"` // whether all buyers share one process
}

// ErrBadConfig means that this configuration cannot be played. An error that wraps it names allowed
// values.
var ErrBadConfig = errors.New("nothing to play")

// ErrMissing means that the embedded servers (SQLite and Redis) do not support the strategy. An error that
// wraps it gives the reason.
var ErrMissing = errors.New("it cannot be played")

// Filled returns c with defaults for its zero fields, and with the strategy's own name instead of an alias.
func (c Config) Filled() Config {
	if c.Strategy != "" { // an empty name would match an alias
		c.Strategy = lockstrategy.Resolve(c.Strategy)
	}
	c.Buyers, c.Stock, c.Units = cmp.Or(c.Buyers, 2), cmp.Or(c.Stock, 1), cmp.Or(c.Units, 1)
	if c.Events == nil {
		c.Events = []explore.Event{}
	}
	return c
}

// Check returns an error of one line if c, a result of Filled, is invalid. The error is ErrMissing if the
// explorer cannot control the strategy's commands, and ErrBadConfig otherwise.
func (c Config) Check() error {
	entry, known := lockstrategy.ByName(c.Strategy)
	all := explore.Events(c.Shared)
	switch {
	case !known || c.Strategy == "":
		return fmt.Errorf("%w: %w", ErrBadConfig, nearest.Unknown("strategy", c.Strategy, lockstrategy.Names(), "shop strategies"))
	case c.Buyers < explore.MinBuyers || c.Buyers > MostBuyers:
		return fmt.Errorf("%w: buyers must be between %d and %d (got %d)", ErrBadConfig, explore.MinBuyers, MostBuyers, c.Buyers)
	case c.Stock < 1 || c.Stock > MostStock:
		return fmt.Errorf("%w: stock must be between 1 and %d (got %d)", ErrBadConfig, MostStock, c.Stock)
	case c.Units < 1 || c.Units > c.Stock:
		return fmt.Errorf("%w: units must be between 1 and the stock, %d (got %d)", ErrBadConfig, c.Stock, c.Units)
	}
	for _, e := range c.Events {
		if !slices.Contains(all, e) {
			return fmt.Errorf("%w: %w", ErrBadConfig, nearest.Unknown("event", string(e), all, ""))
		}
	}
	if why := explore.Ungated(entry); why != "" {
		return fmt.Errorf("%w: %s: %s", ErrMissing, c.Strategy, why)
	}
	return nil
}

// command returns the command `shop explore` for the same configuration.
func (c Config) command(bound int) string {
	events := make([]string, len(c.Events))
	for i, e := range c.Events {
		events[i] = string(e)
	}
	text := "shop explore " + c.Strategy
	for _, flag := range []struct {
		given bool
		text  string
	}{
		{c.Buyers != 2, fmt.Sprintf(" --buyers %d", c.Buyers)},
		{c.Stock != 1, fmt.Sprintf(" --stock %d", c.Stock)},
		{c.Units != 1, fmt.Sprintf(" --units %d", c.Units)},
		{len(c.Events) > 0, " --events " + strings.Join(events, ",")},
		{c.Shared, " --instances shared"},
		{bound >= 0 || c.Buyers > 2, fmt.Sprintf(" --bound %d", max(bound, -1))},
	} {
		if flag.given {
			text += flag.text
		}
	}
	return text
}
