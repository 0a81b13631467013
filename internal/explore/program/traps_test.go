package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestTraps searches programs that an explorer can easily misjudge, see testdata/traps. If the search
// skipped schedules, it would miss the mistakes of the first two programs. Most other programs are
// correct. If the explorer overlooked one of their waits, or took it for an endless one, it would report
// a false violation or discard a run.
func TestTraps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode   string
		args   []string
		broken bool
		orders int // 0: as many as fit in the time
		quick  bool
	}{
		{mode: "asks-twice", broken: true, quick: true},
		{mode: "gives-up", broken: true, quick: true},
		{mode: "closes", args: []string{"--buyers", "3", "--max-schedules", "40"}},
		{mode: "sleeps", args: []string{"--max-schedules", "4"}},
		{mode: "ticks"},
		{mode: "timer"},
		{mode: "endless", args: []string{"--events", "timeout"}},
		{mode: "runs-out", orders: 6, quick: true},
		{mode: "crossed", orders: 18},
		{mode: "at-once", args: []string{"--max-schedules", "12"}, broken: true, quick: true},
		{mode: "tables", orders: 10, quick: true},
		{mode: "tables-twice", orders: 22, broken: true, quick: true},
		{mode: "table", orders: 10, quick: true},
	} {
		t.Run(c.mode, func(t *testing.T) {
			if !c.quick {
				tier.Soak(t, "a long search of a program")
			}
			_, r, stderr := search(t, trap(t, c.mode), c.args...)
			if r.Violations > 0 != c.broken || r.Void > 0 || r.Explored < 2 || c.orders > 0 && (r.Explored != c.orders || !r.Complete) {
				t.Errorf("%d of %d orders break, %d void (%v): %s", r.Violations, r.Explored, r.Void, r.Voids, stderr)
			}
			t.Logf("%d of %d in %.0f s", r.Violations, r.Explored, r.Seconds)
		})
	}
}

// TestAppCompound: a sale inside a stored procedure is one step, which hides the mistake in it. Each
// output format says so, and the exit code is 3. For a function that only reads, the result contains a
// note.
func TestAppCompound(t *testing.T) {
	tier.Soak(t, "TestAppDivided also checks exit code 3")
	t.Parallel()
	file := trap(t, "calls")
	page := filepath.Join(t.TempDir(), "app.md")
	code, stdout, stderr := exploreApp(t, file, "--report", page)
	const line = "several statements in one command are one step, and no order inside it was explored: CALL buy('<>')\n"
	if code != shoptest.Inconclusive || !strings.Contains(stderr, "CALL buy('<>'), which runs procedure buy") || !strings.Contains(stdout, "explored 2 of 2 schedules") || strings.Count(stdout, line) != 1 {
		t.Errorf("exit %d: %s%s; want %q", code, stdout, stderr, line)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), strings.TrimSpace(line)) {
		t.Errorf("%v: %s", err, text)
	}
	if _, r, stderr := search(t, file); !slices.Equal(r.Compound, []string{"CALL buy('<>')"}) {
		t.Errorf("%q: %s", r.Compound, stderr)
	}
	reads := statementShop{database: "postgres", sql: []string{"SELECT sellable()", takesOne}, schema: `CREATE FUNCTION sellable() RETURNS bigint LANGUAGE plpgsql AS $$
		DECLARE n bigint; BEGIN SELECT sum(stock) INTO n FROM items; RETURN n - (SELECT count(*) FROM orders); END $$;`}
	if code, r, stderr := search(t, reads.file(t)); code != 0 || !slices.Equal(r.Compound, []string{"SELECT sellable()"}) {
		t.Errorf("exit %d, %q: %s", code, r.Compound, stderr)
	}
	if _, r, stderr := search(t, trap(t, "gives-up"), "--first"); r.Compound != nil {
		t.Errorf("%q: %s", r.Compound, stderr)
	}
}

// TestAppGivesUp: if a buyer tries more often than --tries allows, and then continues without the lock,
// the search is incomplete. If the program then refuses the buyer, the search is complete.
func TestAppGivesUp(t *testing.T) {
	tier.Soak(t, "five searches; TestGaveUp of internal/explore/target/retry covers buyers that give up")
	t.Parallel()
	for _, c := range []struct {
		mode, says string
		code       int
		args       []string
	}{
		{mode: "gives-in", code: shoptest.Inconclusive, says: "a buyer gave up after 8 tries and went on with "},
		{mode: "gives-in", code: shoptest.Broken, args: []string{"--tries", "8", "--first"}},
		{mode: "refuses"},
	} {
		code, stdout, stderr := exploreApp(t, trap(t, c.mode), c.args...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s %q: exit %d, want %d and %q: %s%s", c.mode, c.args, code, c.code, c.says, stdout, stderr)
		}
	}
}

// TestAppRacesItself: if a single buyer breaks a rule with two simultaneous commands, the command
// reports a violation, and not a mistake in oversell.yaml.
func TestAppRacesItself(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := exploreApp(t, trap(t, "races-itself"), "--first")
	const says = "buyer 1 alone has 2 commands under way at once and breaks "
	if code != shoptest.Broken || !strings.Contains(stdout, says) || !strings.Contains(stdout, "again: shop explore") {
		t.Errorf("exit %d without %q: %s%s", code, says, stdout, stderr)
	}
}

// TestAppReplayHolds: if a saved schedule no longer breaks a rule, the command prints that as a result,
// in each format.
func TestAppReplayHolds(t *testing.T) {
	tier.Soak(t, "no other test has it: a saved schedule that no longer breaks")
	t.Parallel()
	file, saved := trap(t, "asks-twice"), filepath.Join(t.TempDir(), "witness.json")
	if code, _, stderr := exploreApp(t, file, "--first", "--save", saved); code != shoptest.Broken {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	rules, _, _ := strings.Cut(string(text), "never:")
	shoptest.Write(t, file, rules+"never: [ SELECT * FROM items WHERE stock < 0 ]\n")
	code, stdout, stderr := exploreApp(t, file, "--replay", saved, "--json")
	var w explore.Witness
	if err := json.Unmarshal([]byte(stdout), &w); code != 0 || err != nil || w.Verdict != verdict.Holds || len(w.Steps) == 0 || !strings.Contains(stderr, "no longer breaks") {
		t.Errorf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	if code, stdout, _ := exploreApp(t, file, "--replay", saved); code != 0 || stdout != "the same schedule no longer breaks\n" {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// TestAppIdleWithin: `idle-within` is the maximum time until a buyer that runs alone is answered.
func TestAppIdleWithin(t *testing.T) {
	t.Parallel()
	file := trap(t, "timer")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	locked := strings.Replace(string(text), "redis: flushdb", "redis: [ FLUSHDB, SET lock x ]", 1)
	shoptest.Write(t, file, "idle-within: 100ms\n"+locked) // the answer takes a second
	const says = "buyer 1 alone gets no answer within 100ms from http://127.0.0.1:8080/buy; `idle-within:` gives it more time"
	if code, _, stderr := exploreApp(t, file); code != shoptest.Harness || !strings.Contains(stderr, says) {
		t.Errorf("exit %d without %q: %s", code, says, stderr)
	}
}

// TestAppStrays: if a connection releases a lock that another connection holds, the exit code is 3. A
// release without a lock changes nothing.
func TestAppStrays(t *testing.T) {
	tier.Soak(t, "no other test has it: a lock that another connection releases")
	t.Parallel()
	for mode, c := range map[string]struct {
		code  int
		stray string
	}{"strays": {shoptest.Inconclusive, "SELECT RELEASE_LOCK('item')"}, "try-lock": {}} {
		if code, r, stderr := search(t, trap(t, mode)); code != c.code || r.Stray != c.stray || !strings.Contains(stderr, c.stray) || r.Violations > 0 {
			t.Errorf("%s: exit %d, %q, %d violations: %s", mode, code, r.Stray, r.Violations, stderr)
		}
	}
}

// TestAppHosts: a lock whose holder is named by host and process id works for two processes on one
// host. It fails for two hosts with the same name, and the result then says that the names were the
// same.
func TestAppHosts(t *testing.T) {
	t.Parallel()
	file := trap(t, "host-pid")
	code, r, stderr := search(t, file)
	if code != 0 || r.Explored < 2 || r.Namesakes != "" {
		t.Errorf("processes of one host: exit %d, %d explored, %q: %s", code, r.Explored, r.Namesakes, stderr)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	shoptest.Write(t, file, "hosts: same\n"+string(text))
	code, stdout, stderr := exploreApp(t, file)
	if host, _ := os.Hostname(); code != shoptest.Broken || !strings.Contains(stdout, "two buyers have sent host name "+host+" and process id 1000") {
		t.Errorf("hosts of one name: exit %d: %s%s", code, stdout, stderr)
	}
}

// TestLeakedLock: if a buyer leaves a lock on its idle connection, the verdict is leaked_lock, with the
// command that took the lock. The lock does not affect the replay.
func TestLeakedLock(t *testing.T) {
	t.Parallel()
	for mode, has := range map[string]string{
		"keeps-name": "lock 'item' (SELECT GET_LOCK('item', 10))",
		"keeps-row":  "an open transaction (BEGIN), row locks (SELECT stock FROM items WHERE id = 1 FOR UPDATE)",
	} {
		code, r, stderr := search(t, trap(t, mode), "--max-schedules", "1")
		want := "the idle connection of buyer 2 still has " + has
		if code != shoptest.Broken || r.Void > 0 || r.Explored != 1 || r.Violations != 1 || r.Witness == nil || r.Witness.Verdict != verdict.LeakedLock || r.Witness.Why != want {
			t.Errorf("%s: exit %d, %d of %d break, %d void, %+v: %s; want %s", mode, code, r.Violations, r.Explored, r.Void, r.Witness, stderr, want)
		}
	}
}

// TestDivergedServesOn: if some runs of a program diverge, the explorer does not restart the program
// after each of them, since a start may take long.
func TestDivergedServesOn(t *testing.T) {
	tier.Soak(t, "no other test has it: the starts of a program whose runs diverge")
	t.Parallel()
	file := trap(t, "seventh")
	starts := filepath.Join(t.TempDir(), "starts")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, fmt.Appendf(text, "\nenv: { STARTS: %s }\n", starts), 0o600)
	}
	require.NoError(t, err)
	_, r, stderr := search(t, file, "--max-schedules", "30")
	lines, err := os.ReadFile(starts)
	require.NoError(t, err)
	if n := strings.Count(string(lines), "\n"); r.Void < 2 || n > 2 {
		t.Errorf("%d runs diverged, %d explored, and the two programs were started %d times: %s", r.Void, r.Explored, n, stderr)
	}
}

// TestWaitRunsOut: if no other buyer can move, a wait with a time limit expires, and the witness says
// so. A buyer that waits without a limit is stalled.
func TestWaitRunsOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode, steps string
		code        int
		says        []string
	}{
		{"runs-out", "2.1*2.2*4.1*2", 0, []string{"no other buyer can move", "the wait of 1s ran", "(timed out) BLPOP left 1 -> nil", "buyer 1: 409 sold out, buyer 2: 200 bought"}},
		{"lost", "2.1*2.2*4", shoptest.Broken, []string{"stalled: buyer 1 waits forever"}},
	} {
		code, stdout, stderr := exploreApp(t, trap(t, c.mode), "--replay", "v1:"+c.mode+":b2:s1:"+c.steps)
		for _, want := range c.says {
			if code != c.code || !strings.Contains(stdout, want) {
				t.Errorf("%s: exit %d without %q: %s%s", c.mode, code, want, stdout, stderr)
			}
		}
	}
}

// TestWatchLocked: the witness marks the rows that the program has locked. These rows do not block the
// search.
func TestWatchLocked(t *testing.T) {
	tier.Soak(t, "no other test has it: locked rows under `watch:`")
	t.Parallel()
	for mode, steps := range map[string]string{"table": "1*6.2*4", "tables": "1*5.2*3"} {
		code, stdout, stderr := exploreApp(t, trap(t, mode), "--replay", "v1:"+mode+":b2:s1:"+steps)
		if code != 0 || !strings.Contains(stdout, "│ locked │") {
			t.Errorf("%s: exit %d: %s%s", mode, code, stdout, stderr)
		}
	}
}

func trap(t *testing.T, mode string) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	dir := absolute(t, "testdata/traps")
	file := writeApp(t, fmt.Sprintf(`name: %s
run: python3 %s/shop.py %[1]s
ready: http://127.0.0.1:8080/
mysql: 127.0.0.1:3306
redis: 127.0.0.1:6379
local: true
schema: %[2]s/schema.sql
`, mode, dir), "buyer: POST http://127.0.0.1:8080/buy")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	const watch = "watch: SELECT stock FROM items WHERE id = 1\nreset:\n"
	change := strings.NewReplacer("reset:\n", watch+"  redis: flushdb\n")
	switch mode {
	case "closes", "keeps-row", "table":
		change = strings.NewReplacer("mysql: 127.0.0.1:3306\nredis: 127.0.0.1:6379", "postgres: 127.0.0.1:5432", "reset:\n", watch)
	case "calls":
		change = strings.NewReplacer("redis: 127.0.0.1:6379\n", "", "schema.sql", "calls.sql")
	}
	shoptest.Write(t, file, change.Replace(string(text)))
	return file
}
