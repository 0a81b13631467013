package ci

import (
	"context"
	"slices"

	"github.com/oversell/oversell/internal/explore/app"
)

// Needs returns the kinds of servers that Run would start: "mysql", "postgres" and "redis", each once. A check
// whose result is in the cache needs no server.
func Needs(ctx context.Context, c Config) (kinds []string) {
	for _, j := range c.Shard.of(c.jobs()) {
		a, isApp := j.(*appJob)
		if !isApp || !a.app.App.Local || c.kept(a.fingerprint(ctx), a) != nil {
			continue
		}
		for _, kind := range a.servers() {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

func (j *appJob) servers() (kinds []string) {
	for _, server := range []struct {
		kind string
		used *app.Server
	}{
		{"mysql", j.app.App.MySQL},
		{"postgres", j.app.App.Postgres},
		{"redis", j.app.App.Redis},
	} {
		if server.used != nil {
			kinds = append(kinds, server.kind)
		}
	}
	return kinds
}
