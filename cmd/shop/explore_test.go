package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/localserver/localservertest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/verdict"
)

// exploreCLI runs the command as a user does.
func exploreCLI(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, append([]string{"explore"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestExploreExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string // on stdout or stderr
	}{
		{"none", 1, "explored 92 of 92 schedules"},
		{"conditional", 0, "explored 36 of 36 schedules"},
		{"conditional --reduce", 0, "(reduced)"},
		{"none --format html", 1, "<b>oversold</b>: 2 units sold of 1 stocked"},
		{"conditional --format html", 0, "explored 36 of 36 schedules"},
		{"conditional --format mermaid", 0, "none breaks"},
		{"none --buyers 3 --first", 1, "oversold"},
		{"none --buyers 4 --first", 1, "oversold"}, // 8 are below
		{"conditional --buyers 8 --budget 500ms", 3, "(buyers alike), among them all of at most"},
		{"conditional --overlap", 0, "not all that can happen"},
		{"none --replay v1:none:b2:s1:1*2.2+1.1*2.2*4", 1, "buyer 1: sold, buyer 2: sold"},
		{"setnx --buyers 3 --bound 1", 0, "(bound 1)"},
		{"redis-lua --budget 50ms", 3, "not all was explored"},
		{"redis-lua --budget 50ms --reduce", 3, "not complete"},
		{"redis-lua --budget 50ms --bound 3", 3, "not complete"},
		{"redisson --budget 50ms --overlap", 3, "not complete"},
		{"serializable --budget 50ms --buyers 8 --first", 3, "not complete"},
		{"setnx --events crash", 1, "stalled"},
		{"none --replay v1:none:b2:s1:1*2.2*5.1*3", 1, "oversold: 2 units sold of 1 stocked"},
		{"none --replay v1:none:b2:s1:1*5.2", 0, "buyer 1: sold, buyer 2: sold_out"},
		{"", 2, "give one strategy"},
		{"nope", 2, `strategy "nope" is not known`},
		{"none --events flood", 2, `event "flood" is not known`},
		{"none --events crash,", 2, `event "" is not known`},
		{"none --buyers 1", 2, "--buyers is 1"},
		{"none --buyers 9", 2, "--buyers is 9"},
		{"none --stock 0", 2, "--stock is 0"},
		{"none --format svg", 2, `--format is "svg"`},
		{"none --budget 0s", 2, "--budget is 0s"},
		{"none --reduce --bound 1", 2, "exclude each other"},
		{"none --reduce --overlap", 2, "exclude each other"},
		{"mutex --instances shared --events crash", 2, "no crash"},
		{"named-lock", 2, "the database is not MySQL or MariaDB"},
		{"zookeeper", 2, "not for zookeeper"},
		{"none --replay v1:redis:b2:s1:1.2", 2, "of the strategy"},
		{"none --replay v7:none:b2:s1:1.2", 2, "version v7"},
		{"none --replay rubbish", 2, "no replay line"},
		{"none --replay v1:none:b9:s1:1", 2, "does not say b2"},
		{"none --replay v1:none:b2:s0:1", 2, "does not say b2"},
		{"none --replay v1:none:b2:s1:1*5", 2, "ends before the buyers do"},
		{"none --replay v1:none:b2:s1:1*1000", 2, "is no step"},
		{"none --replay v1:none:b2:s1:", 2, "is no step"},
		{"setnx --replay v1:setnx:b2:s1:1.crash2", 2, "step 2 of the schedule is crash2"},
		{"etcd", 2, "not for etcd"},
		{"redis --db sqlite:///absent/shop.db", 2, "no folder /absent"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := exploreCLI(t.Context(), strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("exit %d, want %d; want something with %q:\n%s%s", code, c.code, c.says, stdout, stderr)
			}
			if code >= 2 && strings.Count(stderr, "\n") != 1 {
				t.Errorf("not one line: %q", stderr)
			}
		})
	}
}

func TestExploreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := exploreCLI(ctx, "none"); code != exitInterrupted {
		t.Errorf("exit %d, %q; want %d", code, stderr, exitInterrupted)
	}
}

// TestExploreJSON: the members that docs/design.md fixes.
func TestExploreJSON(t *testing.T) {
	_, stdout, _ := exploreCLI(t.Context(), "none", "--json")
	var report map[string]any
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	for _, member := range strings.Fields("strategy engine buyers stock events bound explored total complete violations seconds per_second witness") {
		if _, ok := report[member]; !ok {
			t.Errorf("no member %s", member)
		}
	}
	witness, _ := report["witness"].(map[string]any)
	steps, _ := witness["steps"].([]any)
	if witness["schedule"] == "" || witness["verdict"] != "oversold" || len(steps) != 10 {
		t.Errorf("witness %v", witness)
	}
	for _, member := range strings.Fields("buyer command result stock records") {
		if _, ok := steps[0].(map[string]any)[member]; !ok {
			t.Errorf("a step has no %s", member)
		}
	}
}

var updateWitnesses = flag.Bool("update-witnesses", false, "write docs/witnesses")

// TestWitnesses: docs/witnesses shows each broken strategy's shortest violation, as the
// code runs it today, and the search that the file names finds it.
//
//	go test ./cmd/shop -run TestWitnesses -update-witnesses
func TestWitnesses(t *testing.T) {
	cli := func(t *testing.T, args ...string) (stdout, stderr string) {
		_, stdout, stderr = exitOfCommand(t, plainCommand(t, append([]string{"explore"}, args...)...))
		return stdout, stderr
	}
	shown := map[string]bool{}
	const whole = "it runs for a minute until it has seen every order"
	for _, w := range []struct{ file, found, line, soak string }{
		{"none", "none", "v1:none:b2:s1:1*2.2*5.1*3", ""},
		{"transaction", "transaction --engine local", "v1:transaction:b2:s1:1*2.2*5.1*3", ""}, // SQLite refuses a stale snapshot
		{"early-unlock", "early-unlock --instances shared", "v1:early-unlock:b2:s1:shared:1*5.2*2.1.2*4", ""},
		{"mutex", "mutex", "v1:mutex:b2:s1:1*2.2*5.1*3", ""},
		{"setnx", "setnx --events crash", "v1:setnx:b2:s1:1.2.crash1", ""},
		{"setnx-expire", "setnx-expire --events crash", "v1:setnx-expire:b2:s1:1.2.crash1", ""},
		{"getset", "getset --events expire --bound 1", "v1:getset:b2:s1:1*3.2.expire.2*8.1*4", ""},
		{"setnx-ttl", "setnx-ttl --events expire --bound 1", "v1:setnx-ttl:b2:s1:1*3.expire.2*7.1*4", ""},
		{"token-get-del", "token-get-del --events expire --bound 1", "v1:token-get-del:b2:s1:1*3.expire.2*8.1*4", ""},
		{"token-get-del-foreign", "token-get-del --events expire --bound 2", "v1:token-get-del:b2:s1:1*7.expire.2.1.2*2", ""},
		{"redis", "redis --events expire --bound 1", "v1:redis:b2:s1:1*3.expire.2*7.1*4", ""},
		{"watchdog", "watchdog --events expire --bound 1", "v1:watchdog:b2:s1:1*3.expire.2*7.1*4", ""},
		{"redisson", "redisson --events expire --bound 1", "v1:redisson:b2:s1:1*3.expire.2*7.1*4", ""},
		{"multilock", "multilock --events expire --bound 1", "v1:multilock:b2:s1:1a.1b.1c.1*2.expire.2a.2b.2c.2*5.2c.2b.2a.1*3.1c.1b.1a", whole},
		{"redlock", "redlock --events forget --first", "v1:redlock:b2:s1:1a.2a.2b.forget-b.2c.2.1b.1c.1*5.1a.1b.1c.2*4.2a.2b.2c", ""},
		{"redis-decr", "redis-decr --events crash --bound 1", "v1:redis-decr:b2:s1:1*4.2*3.crash1", ""},
		{"redis-decr-forget", "redis-decr --events forget --bound 1", "v1:redis-decr:b2:s1:1*3.forget.1*2.2*3", ""},
	} {
		s, err := explore.ParseSchedule(w.line)
		if err != nil {
			t.Fatal(err)
		}
		shown[s.Strategy] = true
		t.Run(w.file, func(t *testing.T) {
			t.Parallel()
			local := strings.Contains(w.found, "--engine local")
			if local {
				localservertest.SkipShort(t)
			}
			t.Run("search", func(t *testing.T) {
				switch {
				case strings.Contains(w.found, "--first"):
					t.Skip("it ends at the first that breaks, which need not be the one shown")
				case testing.Short():
					t.Skip("-short replays, and searches nothing: run make test")
				}
				exploretest.SkipUnlessSoak(t, w.soak)
				if found, stderr := cli(t, append(strings.Fields(w.found), "--budget", "10m")...); !strings.Contains(found, "--replay "+w.line+"\n") {
					t.Errorf("shop explore %s finds another:\n%s%s", w.found, found, stderr)
				}
			})
			replay := []string{s.Strategy, "--replay", w.line}
			if local {
				replay = []string{s.Strategy, "--engine", "local", "--replay", w.line}
			}
			text, stderr := cli(t, replay...)
			diagram, _ := cli(t, append(replay, "--format", "mermaid")...)
			if stderr != "" {
				t.Fatal(stderr)
			}
			want := "<!-- written by go test ./cmd/shop -run TestWitnesses -update-witnesses -->\n# " + w.file + "\n\n" +
				"Found by `shop explore " + w.found + "`; again by\n`shop explore " + strings.Join(replay, " ") + "`\n\n" +
				"```\n" + text + "```\n\n```mermaid\n" + diagram + "```\n"
			path := filepath.Join("../../docs/witnesses", w.file+".md")
			if *updateWitnesses {
				if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("%s is not what the code does now", path)
			}
		})
	}
	for _, e := range lockstrategy.All() {
		if !shown[e.Name] && breaks(e) && !slices.Contains(e.Needs, lockstrategy.NeedsZookeeper) && !slices.Contains(e.Needs, lockstrategy.NeedsEtcd) {
			t.Errorf("%s is promised to break, and no witness shows it", e.Name)
		}
	}
}

// breaks: the catalogue says so, under some fault.
func breaks(e lockstrategy.Entry) bool {
	for _, promised := range e.Promise {
		if promised != verdict.Holds {
			return true
		}
	}
	return false
}
