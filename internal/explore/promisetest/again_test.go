package promisetest_test

import (
	"os/exec"
	"testing"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
)

// TestSameAgain: the schedule determines everything that the code under test can observe. Each
// search with the same limit therefore runs the same schedules in the same order, on an idle
// machine and next to busy loops.
func TestSameAgain(t *testing.T) {
	tier.Test(t, "it needs busy loops")
	calm, busy, schedules, loops := 1, 1, 3, 2
	if tier.Soaking() {
		calm, busy, schedules, loops = 20, 20, 60, 6
	}
	e := enginetest.Embedded(t)
	digests := map[string]string{}
	search := func(t *testing.T, name string) {
		c := exploretest.Config(e, exploretest.Entry(t, name))
		c.Events, c.Schedules = explore.Events(false), schedules
		result := exploretest.Search(t, c)
		if known := digests[name]; known != "" && known != result.Digest {
			t.Errorf("%d schedules with the digest %s, and before it was %s", result.Runs, result.Digest, known)
		}
		digests[name] = result.Digest
	}
	var names []string
	for _, entry := range lockstrategy.All() {
		if entry.Missing(onengine.Deps(e)) == "" && explore.Ungated(entry) == "" {
			names = append(names, entry.Name)
		}
	}
	all := func(times int, how string) {
		for range times {
			for _, name := range names {
				t.Run(name+"/"+how, func(t *testing.T) { search(t, name) })
			}
		}
	}
	all(calm, "calm")
	for range loops {
		loop := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Skip("no shell for a busy loop: ", err)
		}
		defer func() { _ = loop.Process.Kill(); _ = loop.Wait() }()
	}
	all(busy, "busy")
	if len(names) < 20 {
		t.Errorf("only %d strategies", len(names))
	}
}
