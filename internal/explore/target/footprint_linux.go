package target

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/wire/redis"
)

func (d *delivery) usage(o *gates.Op) (u usage) {
	server := o.Conn().Protocol
	if server == "redis" {
		u.words, u.changes = redis.Words(o.Raw), o.Effect != schedule.Reads
		u.database, _, _ = strings.Cut(o.Text, ": ")
		return u
	}
	all := func(names []string) (resources []Resource) {
		for _, name := range names {
			resources = append(resources, Resource{server, name})
		}
		return resources
	}
	code := d.programs.Code
	uses := code.Uses(o)
	u.reads, u.writes = all(uses.Reads), all(uses.Writes)
	for _, name := range slices.Concat(uses.Locks, uses.Holds) {
		if code.IsView(o, name) {
			name = anything
		}
		u.locks = append(u.locks, Resource{server, name})
	}
	for _, name := range uses.Writes {
		u.related = append(u.related, all(code.Related(o, name))...)
	}
	if uses.Any {
		u.reads, u.locks, u.writes = all([]string{anything}), all([]string{anything}), all([]string{anything})
	}
	return u
}

// Footprint returns the resources that a buyer used when it ran alone. For Redis, it asks the server for a command's
// keys. A script or a transaction counts as using every key, since Redis does not report theirs.
func (x *Runner) Footprint(ctx context.Context, a Alone) (f Footprint, _ error) {
	var stale []Resource // read without a lock
	for _, e := range a.answers {
		u := e.usage
		if err := x.resolve(ctx, &u); err != nil {
			return f, err
		}
		f.Reads = append(f.Reads, slices.Concat(u.reads, u.related)...)
		f.Locks = append(f.Locks, u.locks...)
		f.Writes = append(f.Writes, u.writes...)
		stale = append(stale, u.reads...)
		for _, r := range u.writes {
			if slices.Contains(stale, r) {
				f.Naive = append(f.Naive, r)
			}
		}
	}
	for _, list := range []*[]Resource{&f.Reads, &f.Locks, &f.Writes, &f.Naive} {
		slices.SortFunc(*list, func(a, b Resource) int { return strings.Compare(a.String(), b.String()) })
		*list = slices.Compact(*list)
	}
	return f, nil
}

// Ignored returns the resources that the buyer's ignored commands used, without the tables that oversell.yaml ignores.
func (x *Runner) Ignored(a Alone) (f Footprint) {
	for _, c := range a.ignored {
		t := x.guard.touch(c)
		for object := range t.Touches {
			_, name, _ := strings.Cut(object, " ")
			one := Resource{c.Protocol, name}
			if f.Reads = append(f.Reads, one); t.Writes[object] {
				f.Writes = append(f.Writes, one)
			}
		}
		if t.Undecided || t.Wild {
			f.Writes = append(f.Writes, Resource{c.Protocol, anything})
		}
		if d, sql := effect.DialectOf(c.Protocol); sql && effect.Mentions(c.Text, d).Waits {
			f.Locks = append(f.Locks, Resource{c.Protocol, effect.NamedLocks})
		}
	}
	return f
}

// resolve asks Redis for the keys of u's command.
func (x *Runner) resolve(ctx context.Context, u *usage) error {
	if u.words == nil {
		return nil
	}
	var keys []string
	known := false
	c := effect.Redis{Name: strings.ToUpper(u.words[0])}
	switch {
	case strings.HasSuffix(c.Name, "PUBLISH") && len(u.words) > 1:
		keys, known = []string{"of channel " + u.words[1]}, true
	case !c.IsScript():
		var err error
		if keys, known, err = x.programs.Servers.Redis().Named(ctx, u.words); err != nil {
			return fmt.Errorf("redis: %w", err)
		}
	}
	if !known {
		keys = []string{anything}
	}
	for _, key := range keys {
		if strings.HasPrefix(u.database, "db ") && key != anything {
			key += " in " + u.database
		}
		one := Resource{"redis", key}
		if !u.changes {
			u.reads = append(u.reads, one)
			continue
		}
		u.locks, u.writes = append(u.locks, one), append(u.writes, one) // Redis runs one command at a time, so a write counts as a lock, too
	}
	return nil
}
