package explore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
)

var stray = schedule.Void{Why: "a command came that nobody had waited for"}

// TestVoid: discarded runs are repeated, and not counted.
func TestVoid(t *testing.T) {
	clean := oversells()
	want := searchLittle(t, littleConfig(clean), clean)
	if !want.Complete || want.Explored != 20 || want.Violations != 12 || want.Void != 0 {
		t.Fatalf("%+v", want)
	}
	// The run next to the shortest violation is discarded, so the search replays that violation last.
	for reduce, witness := range map[bool]string{false: "v1:little:b2:s1:2.1.2.1.2.1", true: "v1:little:b2:s1:2*2.1*2.2.1"} {
		l := oversells()
		l.trouble = func(w *world, p *schedule.Point) error {
			if l.runs%3 == 0 && p.AtEnd() {
				return schedule.Void{Why: stray.Why, Details: fmt.Sprint("run ", l.runs)}
			}
			return nil
		}
		c := littleConfig(l)
		c.Reduce = reduce
		r := searchLittle(t, c, l)
		if r.Complete || r.Whole || r.Void == 0 || r.Voids()[stray.Why] != r.Void || r.Lost != 0 || r.Dropped != 0 {
			t.Errorf("complete %v, %d void %v, %d lost", r.Complete, r.Void, r.Voids(), r.Lost)
		}
		if len(r.Voided) == 0 || r.Voided[0].Why != stray.Why || r.Voided[0].Details != "run 3" || r.Voided[0].Runs != 1 {
			t.Errorf("%+v", r.Voided)
		}
		if !reduce && (r.Explored != want.Explored || r.Violations != want.Violations) || r.Witness == nil || r.Witness.Schedule != witness {
			t.Errorf("%d orders, %d violations, %v; want %d, %d, %s", r.Explored, r.Violations, r.Witness, want.Explored, want.Violations, witness)
		}
		report := explore.NewReport(c, r)
		if said := report.Extent(); !strings.Contains(said, fmt.Sprintf("; %d runs discarded (%s), not counted: not complete", r.Void, stray.Why)) || strings.Contains(said, " of 20") || report.Total != nil {
			t.Errorf("says %q", said)
		}
	}
}

// TestVoidSeen: the report shows details of each reason, the most frequent first, up to a maximum.
func TestVoidSeen(t *testing.T) {
	l := oversells()
	l.trouble = func(_ *world, p *schedule.Point) error {
		switch {
		case !p.AtEnd():
			return nil
		case l.runs%2 == 0:
			return schedule.Void{Why: stray.Why, Details: "buyer 1:\n\"SELECT 1\""}
		case l.runs%5 == 0:
			return schedule.Void{Why: "rare", Details: fmt.Sprint("run ", l.runs)}
		}
		return nil
	}
	c := littleConfig(l)
	r := explore.NewReport(c, searchLittle(t, c, l))
	if len(r.Voided) < 2 || r.Voided[0].Details != `buyer 1: "SELECT 1"` || r.Voided[0].Runs != r.Voids[stray.Why] || r.Voided[1].Details != "run 5" || r.Voided[1].Runs != 1 {
		t.Fatalf("%+v", r.Voided)
	}
	notes := seenIn(t, r)
	if want := fmt.Sprintf(`%d runs discarded: %s: buyer 1: "SELECT 1"`, r.Voided[0].Runs, stray.Why); len(notes) != len(r.Voided) || notes[0] != want || notes[1] != "1 run discarded: rare: run 5" {
		t.Errorf("%q, want %q first", notes, want)
	}

	l = longer()
	l.trouble = func(_ *world, p *schedule.Point) error {
		if p.AtEnd() && l.runs%2 == 0 {
			return schedule.Void{Why: stray.Why, Details: fmt.Sprint("run ", l.runs)}
		}
		return nil
	}
	c = littleConfig(l)
	c.Schedules = 200
	r = explore.NewReport(c, searchLittle(t, c, l))
	if most := r.Voided[0]; len(r.Voided) != 21 || most.Details != "" || most.Runs != r.Void-20 || most.Runs < 50 {
		t.Errorf("%d kinds, the commonest %+v, of %d", len(r.Voided), most, r.Void)
	}
}

// seenIn returns the report's notes after the one with the answers.
func seenIn(t *testing.T, r explore.Report) []string {
	t.Helper()
	notes := r.Notes()
	if len(notes) == 0 || !strings.HasPrefix(notes[0], "answers: ") {
		t.Fatalf("%q does not begin with the answers", notes)
	}
	return notes[1:]
}

// TestVoidIDs: discarded runs count together if their details differ only in ids, not in the buyer or command.
func TestVoidIDs(t *testing.T) {
	seen := []string{
		`buyer 1: "UPDATE orders SET paid = 1 WHERE id = 57"`,
		`buyer 1: "UPDATE orders SET paid = 1 WHERE id = 1000058"`,
		`buyer 2: "UPDATE orders SET paid = 1 WHERE id = 59"`,
		`buyer 1: "GET cart:6f9619ff-8b86-d011-b42d-00cf4fc964ff"`,
		`buyer 1: "GET cart:0e984725-c51c-4bf4-9960-e1c80e27aba0"`,
		`buyer 1: "GET cart"`,
	}
	l := longer()
	voids := 0
	l.trouble = func(_ *world, p *schedule.Point) error {
		if !p.AtEnd() || l.runs%2 == 0 || voids == len(seen) {
			return nil
		}
		voids++
		return schedule.Void{Why: stray.Why, Details: seen[voids-1]}
	}
	c := littleConfig(l)
	c.Schedules = 60
	r := explore.NewReport(c, searchLittle(t, c, l))
	var got []string
	for _, v := range r.Voided {
		got = append(got, fmt.Sprint(v.Runs, " ", v.Details))
	}
	want := []string{"2 " + seen[0], "2 " + seen[3], "1 " + seen[2], "1 " + seen[5]}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCompound: each command with several statements is listed once, up to a maximum.
func TestCompound(t *testing.T) {
	l := oversells()
	c := littleConfig(l)
	if notes := seenIn(t, explore.NewReport(c, searchLittle(t, c, l))); len(notes) > 0 {
		t.Errorf("%q, and there is nothing to note", notes)
	}
	l = oversells()
	l.compound = func() []string { return []string{"CALL a()", fmt.Sprintf("CALL b(%d)", l.runs%4)} }
	r := explore.NewReport(c, searchLittle(t, c, l))
	if want := []string{"CALL a()", "CALL b(1)", "CALL b(2)", "CALL b(3)", "CALL b(0)"}; !slices.Equal(r.Compound, want) {
		t.Errorf("%q, want %q", r.Compound, want)
	}
	if got, want := seenIn(t, r), []string{"several statements in one command are one step, and no order inside it was explored: CALL a() | CALL b(1) | CALL b(2) | and 2 more"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestVoidLost: a branch that is discarded three times is given up, with all schedules below it.
func TestVoidLost(t *testing.T) {
	l := oversells()
	l.trouble = func(w *world, _ *schedule.Point) error {
		if slices.Equal(w.tokens, []string{"2"}) {
			return stray
		}
		return nil
	}
	c := littleConfig(l)
	r := searchLittle(t, c, l)
	if r.Complete || r.Void != 3 || r.Lost != 1 || r.Explored != 10 {
		t.Errorf("complete %v, %d void, %d lost, %d orders", r.Complete, r.Void, r.Lost, r.Explored)
	}
	if said := explore.NewReport(c, r).Extent(); !strings.Contains(said, "; 3 runs discarded ("+stray.Why+"), not counted; 1 schedule given up, each discarded 3 times: not complete") {
		t.Errorf("says %q", said)
	}
}

// TestVoidAlways: if every run is discarded, the search ends with the reason.
func TestVoidAlways(t *testing.T) {
	for _, c := range []struct {
		good, runs int
		says       string
	}{
		{0, 10, "the first 10 runs were all discarded: "},
		{1, 51, "50 runs in a row were discarded"},
	} {
		l := longer()
		l.buyers = slices.Concat([][][]command{{slices.Repeat([]command{{"add", "a", "x"}}, 30)}}, l.buyers)
		l.trouble = func(*world, *schedule.Point) error {
			switch {
			case l.runs <= c.good:
				return nil
			case l.runs%5 == 0:
				return schedule.Void{Why: "no standstill in time"}
			}
			return stray
		}
		_, err := openLittle(t, littleConfig(l), l).Search(t.Context())
		if !errors.Is(err, explore.ErrHarness) || l.runs != c.runs || !strings.Contains(fmt.Sprint(err), c.says) || !strings.Contains(err.Error(), ": "+stray.Why+", ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("after %d runs: %v", l.runs, err)
		}
	}
}

// longer returns a program in memory with more schedules.
func longer() *little {
	l := oversells()
	l.buyers = append(l.buyers, l.buyers[0])
	return l
}

// TestVoidStray: if a program sends a different command before it reaches a branch, only that run is discarded.
func TestVoidStray(t *testing.T) {
	l := oversells()
	l.trouble = func(w *world, p *schedule.Point) error {
		if l.runs == 4 && p.Depth == 1 {
			p.Choices[0].Name = "another one"
		}
		return nil
	}
	r := searchLittle(t, littleConfig(l), l)
	if r.Void != 1 || r.Voids()["the same schedule did not run the same way again"] != 1 || r.Explored != 20 || r.Lost != 0 {
		t.Errorf("%d void %v, %d orders, %d lost", r.Void, r.Voids(), r.Explored, r.Lost)
	}
}

// TestVoidDropped: a violation that does not recur in a replay is dropped, and the next violation is shown.
func TestVoidDropped(t *testing.T) {
	clean := oversells()
	best := searchLittle(t, littleConfig(clean), clean).Witness.Schedule
	for name, trouble := range map[string]func(l *little, p *schedule.Point) error{
		"void":        func(*little, *schedule.Point) error { return stray },
		"another end": func(l *little, _ *schedule.Point) error { l.wrong = func(*world) string { return "" }; return nil },
		"another way": func(*little, *schedule.Point) error { return fmt.Errorf("%w: 1 is gone", schedule.ErrDivergence) },
	} {
		l := oversells()
		wrong := l.wrong
		l.trouble = func(_ *world, p *schedule.Point) error {
			l.wrong = wrong
			if l.observed > 0 && l.observed <= 5 && p.Depth == 1 {
				return trouble(l, p)
			}
			return nil
		}
		if name == "another end" {
			l.trouble = func(_ *world, p *schedule.Point) error {
				if l.wrong = wrong; l.observed > 0 && l.observed <= 5 {
					return trouble(l, p)
				}
				return nil
			}
		}
		c := littleConfig(l)
		r := searchLittle(t, c, l)
		if r.Dropped != 1 || r.Violations != 11 || r.Explored != 19 || r.Void != 5 || r.Complete || r.Witness == nil || r.Witness.Schedule == best {
			t.Errorf("%s: %d dropped, %d violations of %d, %d void %v, %v", name, r.Dropped, r.Violations, r.Explored, r.Void, r.Voids(), r.Witness.Schedule)
		}
		if said := explore.NewReport(c, r).Extent(); !strings.Contains(said, "; 1 violation did not run again, and is not counted") {
			t.Errorf("says %q", said)
		}
	}
}

// TestKeeps: if a program keeps data after a run that breaks, it is restarted before each replay.
func TestKeeps(t *testing.T) {
	l := oversells()
	wrong := l.wrong
	l.wrong = func(w *world) string {
		why := wrong(w)
		l.kept = l.kept || why != ""
		return why
	}
	l.trouble = func(w *world, p *schedule.Point) error {
		if l.kept && l.observed > 0 && p.Depth == 1 {
			return fmt.Errorf("%w: 1 is gone", schedule.ErrDivergence)
		}
		return nil
	}
	c := littleConfig(l)
	r := searchLittle(t, c, l)
	if r.Witness == nil || r.Witness.Again != "" || !r.Keeps || r.Dropped != 0 {
		t.Errorf("%d dropped, kept %v, witness %+v", r.Dropped, r.Keeps, r.Witness)
	}
	if said := strings.Join(explore.NewReport(c, r).Notes(), "\n"); !strings.Contains(said, "started anew for each replay") {
		t.Errorf("says %q", said)
	}
}

// TestSteady: the witness is a violation that breaks in each replay, if there is one. Otherwise the report says how
// often the witness broke.
func TestSteady(t *testing.T) {
	clean := oversells()
	best := searchLittle(t, littleConfig(clean), clean).Witness.Schedule
	for _, c := range []struct {
		name         string
		holds        func(n int, schedule string) bool // whether the n-th replay holds
		first        bool                              // whether the witness is the shortest schedule
		dropped, all int
		says         string
	}{
		{"the best one breaks once in two replays", func(n int, schedule string) bool { return schedule == best && n%2 == 0 }, false, 0, 12, ""},
		{"each breaks once in two replays", func(n int, _ string) bool { return n%2 == 0 }, true, 0, 12, "this schedule broke in 3 of 5 replays"},
		{"the second breaks most often", func(n int, _ string) bool { return (n%5 != 1) != (n > 5 && n <= 10) }, false, 0, 12, "this schedule broke in 4 of 5 replays"},
		{"only the third breaks, and once", func(n int, _ string) bool { return n != 13 }, false, 11, 1, "this schedule broke in 1 of 5 replays"},
	} {
		l := oversells()
		wrong, replays := l.wrong, 0
		l.trouble = func(w *world, p *schedule.Point) error {
			if l.observed == 0 {
				return nil
			}
			if p.Depth == 0 {
				replays++
			}
			l.wrong = wrong
			if line := (explore.Schedule{Strategy: "little", Buyers: 2, Stock: 1, Tokens: w.tokens}); p.AtEnd() && c.holds(replays, line.String()) {
				l.wrong = func(*world) string { return "" }
			}
			return nil
		}
		config := littleConfig(l)
		r := searchLittle(t, config, l)
		if r.Witness == nil || r.Witness.Again != c.says || r.Dropped != c.dropped || r.Violations != c.all {
			t.Errorf("%s: %d dropped of %d, %+v; want %q", c.name, r.Dropped, r.Violations, r.Witness, c.says)
			continue
		}
		if (r.Witness.Schedule == best) != c.first {
			t.Errorf("%s: the witness is %s, the shortest is %s", c.name, r.Witness.Schedule, best)
		}
		if notes := seenIn(t, explore.NewReport(config, r)); slices.Contains(notes, c.says) == (c.says == "") {
			t.Errorf("%s: %q", c.name, notes)
		}
	}
}

// TestSteadyBesideVoid: one replay that breaks does not make a violation steady if the other replays are void.
func TestSteadyBesideVoid(t *testing.T) {
	for name, c := range map[string]struct {
		isVoid func(replay int) bool
		says   string
	}{
		"each has one replay":  {func(replay int) bool { return replay%5 != 1 }, "this schedule broke in 1 of 1 replays"},
		"the second is steady": {func(replay int) bool { return replay > 1 && replay <= 5 }, ""},
	} {
		l, replays := oversells(), 0
		l.trouble = func(_ *world, p *schedule.Point) error {
			if l.observed == 0 || p.Depth > 0 {
				return nil
			}
			if replays++; c.isVoid(replays) {
				return schedule.Void{Why: "disturbed"}
			}
			return nil
		}
		if r := searchLittle(t, littleConfig(l), l); r.Witness == nil || r.Witness.Again != c.says {
			t.Errorf("%s: %+v, want %q", name, r.Witness, c.says)
		}
	}
}

// TestUnconfirmed: the search replays violations until one breaks again. If none breaks in time, the result counts no
// violation and reports this. Only the pauses take time here.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name      string
			replays   int // number of replays that fail
			pause     time.Duration
			budget    time.Duration
			confirmed bool
		}{{"the twelfth replay breaks again", 11 * 5, 0, 0, true}, {"no replay breaks again in time", 1 << 20, 3 * time.Millisecond, time.Second, false}} {
			l := longer()
			var lastRun time.Time
			l.trouble = func(_ *world, p *schedule.Point) error {
				if p.Depth == 0 {
					lastRun = time.Now()
				}
				if l.observed > 0 && l.observed <= c.replays && p.Depth == 1 {
					time.Sleep(c.pause)
					return stray
				}
				return nil
			}
			config := littleConfig(l)
			config.Budget = c.budget
			begun := time.Now()
			r := searchLittle(t, config, l)
			if after := lastRun.Sub(begun); c.budget > 0 && after > c.budget+c.budget/10 {
				t.Errorf("%s: a run begins after %s of %s", c.name, after, c.budget)
			}
			if (r.Witness != nil) != c.confirmed || (r.Violations > 0) != c.confirmed || (r.Unconfirmed > 0) == c.confirmed || r.Dropped < 10 {
				t.Errorf("%s: %d violations, %d dropped, %d unconfirmed, witness %v", c.name, r.Violations, r.Dropped, r.Unconfirmed, r.Witness)
			}
			answers := 0
			for _, n := range r.Answers {
				answers += n
			}
			if answers != 3*r.Explored {
				t.Errorf("%s: %v, want the answers of three buyers in %d schedules", c.name, r.Answers, r.Explored)
			}
			said := explore.NewReport(config, r).Extent()
			if want := fmt.Sprintf("; %d violations more not replayed and not counted", r.Unconfirmed); !c.confirmed && !strings.Contains(said, want) {
				t.Errorf("%s: says %q, want %q", c.name, said, want)
			}
		}
	})
}

// TestMildness: the witness is a broken rule, even if every other schedule fails or leaks a lock.
func TestMildness(t *testing.T) {
	for _, mild := range []verdict.Verdict{verdict.Failed, verdict.LeakedLock} {
		l := oversells()
		l.mild = mild
		if r := searchLittle(t, littleConfig(l), l); r.Verdicts[mild] == 0 || r.Witness == nil || r.Witness.Verdict != verdict.Broken {
			t.Errorf("%v, witness %+v; want a broken rule", r.Verdicts, r.Witness)
		}
	}
}

// TestShrinkEnds: shrinking a program's violation stops when its time is over or ctx ends. Only the pauses
// take time here.
func TestShrinkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := longer()
		l.buyers[2] = [][]command{slices.Repeat([]command{{"add", "a", "x"}}, 60)}
		c := littleConfig(l)
		c.First, c.Budget = true, 50*time.Millisecond
		l.trouble = func(_ *world, p *schedule.Point) error {
			if p.AtEnd() {
				time.Sleep(time.Millisecond)
			}
			return nil
		}
		l.wrong = func(w *world) string { return "always" }
		begun := time.Now()
		r := searchLittle(t, c, l)
		if took := time.Since(begun); r.Witness == nil || took > 2*time.Second || l.runs < 5 {
			t.Errorf("%d runs in %s: %+v", l.runs, took, r.Witness)
		}

		l.runs = 0
		ctx, cancel := context.WithCancel(t.Context())
		c.Budget = time.Minute
		l.trouble = func(*world, *schedule.Point) error {
			if l.runs == 3 {
				cancel()
			}
			return nil
		}
		r, err := openLittle(t, c, l).Search(ctx)
		if r.Witness == nil || l.runs > 4 || err != nil {
			t.Errorf("%d runs, %v: %+v", l.runs, err, r.Witness)
		}
	})
}

// TestShrinkVoid: a run that is discarded during shrinking is repeated.
func TestShrinkVoid(t *testing.T) {
	shrunk := func(trouble func(l *little) error) explore.Result {
		l := longer()
		l.trouble = func(_ *world, p *schedule.Point) error {
			if p.Depth == 0 {
				return trouble(l)
			}
			return nil
		}
		c := littleConfig(l)
		c.First = true
		return searchLittle(t, c, l)
	}
	want := shrunk(func(*little) error { return nil })
	got := shrunk(func(l *little) error {
		if l.runs%3 == 2 {
			return stray
		}
		return nil
	})
	if got.Void == 0 || want.Void != 0 || got.Witness.Schedule != want.Witness.Schedule {
		t.Errorf("%d void, %s; want %s", got.Void, got.Witness.Schedule, want.Witness.Schedule)
	}
}
