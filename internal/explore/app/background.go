package app

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/effect"
)

// An Ignore describes the commands of the program's background work, such as telemetry and job queues.
// These commands pass the gates without a stop, and are not steps of a schedule.
type Ignore struct {
	Entries  []string         // as written in oversell.yaml
	Tables   []string         // in lower case, without schema
	Patterns []*regexp.Regexp // patterns of statements and Redis commands
}

// Names reports whether a pattern matches the command, or whether the command is a statement about
// listed tables alone. It must name one of them at least.
func (i Ignore) Names(protocol, command string) bool {
	if slices.ContainsFunc(i.Patterns, func(p *regexp.Regexp) bool { return p.MatchString(command) }) {
		return true
	}
	d, sql := effect.DialectOf(protocol)
	if !sql || len(i.Tables) == 0 {
		return false
	}
	named := effect.Relations(command, d)
	other := func(name string) bool { return !slices.Contains(i.Tables, name) }
	return len(named) > 0 && !slices.ContainsFunc(named, other)
}

// tableName matches an entry that is a table. Every other entry is a pattern.
var tableName = regexp.MustCompile(`^(?:\w+\.)?[A-Za-z_]\w*$`)

func (a *App) background(f *file) (err error) {
	if f.Quiet != "" {
		if a.Quiet, err = time.ParseDuration(f.Quiet); err != nil || a.Quiet <= 0 {
			return fmt.Errorf("quiet: %q is not a duration; expected, for example, 2s", f.Quiet)
		}
	}
	a.Ignore.Entries = f.Ignore
	for _, entry := range f.Ignore {
		if tableName.MatchString(entry) {
			name := strings.ToLower(entry[strings.LastIndexByte(entry, '.')+1:])
			if rule := a.RuleOn(name); rule != "" {
				return fmt.Errorf("ignore: the rule %q of never reads %s, so commands on that table must be steps; name other tables, or write a pattern that matches only the program's own statements", rule, name)
			}
			a.Ignore.Tables = append(a.Ignore.Tables, name)
			continue
		}
		pattern, err := regexp.Compile(entry)
		switch {
		case err != nil:
			return fmt.Errorf("ignore: %w", err)
		case pattern.MatchString(""):
			return fmt.Errorf("ignore: %q matches every command; write a table, or a pattern that matches only the program's own commands, such as ^SELECT .* FROM job_queue", entry)
		}
		a.Ignore.Patterns = append(a.Ignore.Patterns, pattern)
	}
	return nil
}
