package explore_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
)

// save writes the witness of a program in memory to a file and reads the file.
func save(t *testing.T, c explore.Config, l *little) *explore.Saved {
	t.Helper()
	x := openLittle(t, c, l)
	r, err := x.Search(t.Context())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "saved.json")
	require.NoError(t, x.Save(r.Witness, path))
	s, err := explore.LoadSaved(path)
	require.NoError(t, err)
	if s.Program != "little" || s.Schedule != r.Witness.Schedule || s.Verdict != r.Witness.Verdict || !reflect.DeepEqual(s.Steps, r.Witness.Choices) || len(s.Steps) != len(r.Witness.Steps) {
		t.Fatalf("%+v is not %+v", s, r.Witness)
	}
	return s
}

// TestAgain replays a saved schedule after changes to the program.
func TestAgain(t *testing.T) {
	none := func(*world) string { return "" }
	for _, c := range []struct {
		name   string
		change func(l *little)
		says   string
		still  bool
		other  explore.OtherWay
	}{
		{"nothing", func(*little) {}, "still breaks: broken: both have seen it", true, explore.OtherWay{}},
		{"void twice", func(l *little) {
			l.trouble = func(*world, *schedule.Point) error {
				if l.runs < 3 {
					return stray
				}
				return nil
			}
		}, "still breaks: broken: both have seen it", true, explore.OtherWay{}},
		{"another token", func(l *little) { // an additional thread that ends first
			l.buyers[0] = [][]command{nil, l.buyers[0][0]}
		}, "still breaks: broken: both have seen it", true, explore.OtherWay{}},
		{"mended", func(l *little) { l.wrong = none }, "the same schedule no longer breaks", false, explore.OtherWay{}},
		{
			"another command", func(l *little) {
				l.buyers[1] = [][]command{{l.buyers[1][0][0], {"maybe", "a", "x"}, l.buyers[1][0][2]}}
			}, "the program now takes another way at step 4: buyer 2 sends maybe a.x where read a.x was expected", false,
			explore.OtherWay{Step: 4, Buyer: 2, Expected: "read a.x", Got: "maybe a.x"},
		},
		{
			"a command less", func(l *little) { l.buyers[0] = [][]command{l.buyers[0][0][:2]} },
			"the program now takes another way at step 5: buyer 1 sends nothing where add a.x was expected", false,
			explore.OtherWay{Step: 5, Buyer: 1, Expected: "add a.x"},
		},
		{
			"a command more", func(l *little) {
				l.buyers[0] = [][]command{append(append([]command{}, l.buyers[0][0]...), command{"read", "b", "x"})}
			},
			"the program now takes another way at step 7: buyer 1 sends read b.x where no more was expected", false,
			explore.OtherWay{Step: 7, Buyer: 1, Got: "read b.x"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := oversells()
			s := save(t, littleConfig(before), before)
			s.Steps = nil // a schedule in which one buyer ends before the other starts
			for _, token := range strings.Fields("1 1 2 2 1 2") {
				name := []string{"add b.visits", "read a.x", "add a.x"}[strings.Count(tokensOf(s), token)]
				s.Steps = append(s.Steps, witness.Choice{Buyer: int(token[0] - '0'), Token: token, Name: name})
			}
			l := oversells()
			c.change(l)
			got, err := openLittle(t, littleConfig(l), l).Again(t.Context(), s)
			require.NoError(t, err)
			if got.String() != c.says {
				t.Errorf("says %q, want %q", got, c.says)
			}
			if c.other == (explore.OtherWay{}) {
				if got.Other != nil || got.StillBreaks() != c.still || got.NoLongerBreaks() == c.still || got.Witness == nil || len(got.Witness.Choices) != 6 {
					t.Errorf("%+v", got)
				}
			} else if got.Other == nil || *got.Other != c.other || got.Witness != nil || got.StillBreaks() || got.NoLongerBreaks() {
				t.Errorf("%+v", got.Other)
			}
		})
	}
}

func tokensOf(s *explore.Saved) (all string) {
	for _, c := range s.Steps {
		all += c.Token
	}
	return all
}

// TestResembling: the buyers of a changed program move in the saved order, as long as the locks let them.
func TestResembling(t *testing.T) {
	read, one, two := command{"read", "a", "x"}, command{"add", "a", "<x.1>"}, command{"add", "b", "x"}
	renamed := command{"add", "a", "<x.2>"} // its value has another name in this run
	both := func(commands ...command) [][][]command { return [][][]command{{commands}, {commands}} }
	s := &explore.Saved{Version: 1, Program: "little", Buyers: 2}
	taken := map[string]int{}
	for _, token := range strings.Fields("1 2 2 2 1 1") {
		s.Steps = append(s.Steps, witness.Choice{Buyer: int(token[0] - '0'), Token: token, Name: []command{read, one, two}[taken[token]].String()})
		taken[token]++
	}
	for _, c := range []struct {
		name     string
		buyers   [][][]command
		schedule string
		matched  int
	}{
		{"nothing", both(read, one, two), "1.2*3.1*2", 6},
		{"a lock", both(command{"lock", "a", "m"}, read, one, two, command{"unlock", "a", "m"}), "1*2.2.1*3.2*4", 3},
		{"another read", both(command{"read", "b", "y"}, one, two), "1.2*3.1*2", 4},
		{"no read", both(one, two), "2*2.1*2", 4},
		{"no read, other names of values", both(renamed, two), "2*2.1*2", 4},
		{"one more at the end", both(read, one, two, read), "1.2*3.1*3.2", 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &little{buyers: c.buyers}
			w, matched, err := openLittle(t, littleConfig(l), l).Resembling(t.Context(), s)
			if err != nil || w.Broken() || w.Schedule != "v1:little:b2:s1:"+c.schedule || matched != c.matched || len(w.Choices) != len(w.Steps) {
				t.Errorf("%+v, %d matched, %v; want %s, %d", w, matched, err, c.schedule, c.matched)
			}
		})
	}
	l := &little{buyers: both(read, one, two), wrong: func(*world) string { return "it breaks" }}
	l.trouble = func(*world, *schedule.Point) error {
		if l.runs < 3 {
			return stray
		}
		return nil
	}
	if w, _, err := openLittle(t, littleConfig(l), l).Resembling(t.Context(), s); err != nil || !w.Broken() || l.runs != 3 {
		t.Errorf("%+v, %v after %d runs", w, err, l.runs)
	}
	c := littleConfig(l)
	c.Buyers = 3
	if _, _, err := openLittle(t, c, l).Resembling(t.Context(), s); err == nil || !strings.Contains(err.Error(), "belongs to little with 2 buyers") {
		t.Error(err)
	}
}

// TestAgainVoid: after five discarded runs, Again returns the schedule as discarded.
func TestAgainVoid(t *testing.T) {
	l := oversells()
	s := save(t, littleConfig(l), l)
	l.runs, l.trouble = 0, func(*world, *schedule.Point) error { return stray }
	x := openLittle(t, littleConfig(l), l)
	_, err := x.Again(t.Context(), s)
	if v, void := schedule.AsVoid(err); !void || v != stray || l.runs != 5 {
		t.Errorf("after %d runs: %v", l.runs, err)
	}
	l.runs = 0
	_, err = x.Replay(t.Context(), s.Schedule)
	if _, void := schedule.AsVoid(err); !void || l.runs != 5 {
		t.Errorf("replayed %d times: %v", l.runs, err)
	}
}

// TestAgainEvents: an event is identified by its token, and the search must include that event.
func TestAgainEvents(t *testing.T) {
	l := oversells()
	l.events = []schedule.Event{"expire"}
	c := littleConfig(l)
	l.wrong = func(w *world) string {
		if w.c.Happened()["expire"] && len(w.tokens) > 1 && w.tokens[1] == "expire" {
			return "it has expired"
		}
		return ""
	}
	s := save(t, c, l)
	if !strings.Contains(s.Schedule, ".expire.") || !reflect.DeepEqual(s.Events, []explore.Event{"expire"}) {
		t.Fatalf("%+v", s)
	}
	got, err := openLittle(t, c, l).Again(t.Context(), s)
	if err != nil || !got.StillBreaks() {
		t.Errorf("%v, %v", got, err)
	}
	c.Events = nil
	if _, err := openLittle(t, c, l).Again(t.Context(), s); err == nil || !strings.Contains(err.Error(), "add --events expire") {
		t.Error(err)
	}
	c.Events, c.Buyers = []explore.Event{"expire"}, 3
	if _, err := openLittle(t, c, l).Again(t.Context(), s); err == nil || err.Error() != "the saved schedule belongs to little with 2 buyers, not to little with 3 buyers" {
		t.Error(err)
	}
}

// TestReplayProgram replays the replay string of a program, and a run that ends with another verdict.
func TestReplayProgram(t *testing.T) {
	l := oversells()
	c := littleConfig(l)
	c.Stock, c.Units = 0, nil
	x := openLittle(t, c, l)
	w, err := x.Replay(t.Context(), "v1:little:b2:s1:1*2.2*3.1")
	if err != nil || w.Verdict != verdict.Broken || w.Program != "little" || w.Schedule != "v1:little:b2:s1:1*2.2*3.1" {
		t.Errorf("%+v, %v", w, err)
	}
	for line, want := range map[string]string{
		"v1:other:b2:s1:1":        "the replay string belongs to other with 2 buyers",
		"v1:little:b2:s1:u1,2:1":  "the replay string belongs to little with 2 buyers and stock 1 and orders of 1,2 units",
		"v1:little:b3:s1:1":       "the replay string belongs to little with 3 buyers",
		"v1:little:b2:s1:1*4.2*3": "the schedule does not fit",
	} {
		if _, err := x.Replay(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestNewOn checks which configurations NewOn refuses.
func TestNewOn(t *testing.T) {
	for name, want := range map[string]string{"": "invalid program name", "a:b": "invalid program name", "a b": "invalid program name", "-x": "invalid program name", strings.Repeat("a", 65): "invalid program name", "shop-1_x.y": ""} {
		c := littleConfig(oversells())
		c.Program = name
		_, err := explore.NewOn(c, oversells(), nil)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v", name, err)
		}
	}
	c := littleConfig(oversells())
	c.Buyers = 9
	if _, err := explore.NewOn(c, oversells(), nil); err == nil || err.Error() != "--buyers must be between 2 and 8 (got 9)" {
		t.Error(err)
	}
	closed := errors.New("closed")
	x, err := explore.NewOn(littleConfig(oversells()), oversells(), func() error { return closed })
	if err != nil || x.Close() != closed {
		t.Error(err)
	}
}

// TestSaveRefused: an error while saving or reading is one line.
func TestSaveRefused(t *testing.T) {
	l := oversells()
	x := openLittle(t, littleConfig(l), l)
	w, err := x.Replay(t.Context(), "v1:little:b2:s1:1*2.2*3.1")
	require.NoError(t, err)
	if err := x.Save(w, filepath.Join(t.TempDir(), "no", "where.json")); err == nil || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if err := x.Save(&explore.Witness{Schedule: "v1:none:b2:s1:1"}, filepath.Join(t.TempDir(), "x.json")); err == nil {
		t.Error("a strategy's order is saved")
	}
	if _, err := explore.LoadSaved(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	tooLong := `{"version": 1, "program": "x", "buyers": 2, "steps": [` + strings.Repeat(`{"buyer": 1, "token": "1", "name": "n"},`, schedule.MaxLine) + `{}]}`
	for text, want := range map[string]string{
		``:               "unexpected end",
		`{}`:             "it has version 0",
		`{"version": 2}`: "it has version 2, and this program reads version 1",
		`{"version": 1, "program": "x", "buyers": 2, "more": 1}`:                                                               "unknown field",
		`{"version": 1, "program": "x y", "buyers": 2}`:                                                                        "invalid program name",
		`{"version": 1, "program": "x", "buyers": 1}`:                                                                          "(got 1)",
		`{"version": 1, "program": "x", "buyers": 2}`:                                                                          "(got 0)",
		`{"version": 1, "program": "x", "buyers": 2, "events": ["flood"], "steps": [{"buyer": 1, "token": "1", "name": "n"}]}`: "flood",
		`{"version": 1, "program": "x", "buyers": 2, "steps": [{"buyer": 1, "token": "1.2", "name": "n"}]}`:                    "step 1",
		`{"version": 1, "program": "x", "buyers": 2, "steps": [{"buyer": 1, "token": "1", "name": ""}]}`:                       "no name",
		`{"version": 1, "program": "x", "buyers": 2, "steps": [{"buyer": 3, "token": "1", "name": "n"}]}`:                      "buyer must be between 0 and 2 (got 3)",
		`{"version": 1, "program": "x", "buyers": 2, "steps": [{"buyer": 1, "token": "1", "name": "n"}]} {"version": 1}`:       "after",
		tooLong: "(got 10001)",
	} {
		path := filepath.Join(t.TempDir(), "bad.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := explore.LoadSaved(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
}

// FuzzSaved: a file is refused in one line, or saving it again gives an equivalent file.
func FuzzSaved(f *testing.F) {
	f.Add(`{"version": 1, "program": "x", "buyers": 2, "events": ["expire", "crash"], "verdict": "broken", "why": "a\nb", "schedule": "v1:x:b2:s1:1", "steps": [{"buyer": 1, "token": "1a", "name": "SELECT ?", "server": "mysql"}, {"buyer": 0, "token": "expire", "name": "expire"}, {"buyer": 2, "token": "1+2", "name": "a with b"}]}`)
	f.Add(`{"version": 1, "program": "x", "buyers": 2, "steps": [{"buyer": 1, "token": "1*3", "name": "n"}]}`)
	f.Add("{\n\"version\": 1,\n\"a\\nb\": 1}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := explore.ParseSaved([]byte(text))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		again, err := json.Marshal(s)
		require.NoError(t, err)
		if same, err := explore.ParseSaved(again); err != nil || !reflect.DeepEqual(same, s) {
			t.Errorf("%s: %v", again, err)
		}
	})
}
