package app

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/effect"
)

// An Ignore names the commands of the program's own work, such as telemetry and job queues. They pass
// the gates at once and are no steps.
type Ignore struct {
	Entries  []string         // as the file has them
	Tables   []string         // in lower case, without schema
	Patterns []*regexp.Regexp // of statements and Redis commands
}

// Names reports whether a pattern matches the command, or whether it is a statement that names at least
// one table and no other tables than those.
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

// background reads `ignore` and `quiet`, which are about the program's own work.
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
