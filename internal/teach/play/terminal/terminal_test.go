package terminal

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/teach/play/results"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { exploretest.Main(m) }

// session returns a session for a level or a configuration. kept collects its stored results.
func session(t *testing.T, name string, c play.Config) (s *Session, kept *[]results.Result) {
	t.Helper()
	kept = new([]results.Result)
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	s = &Session{
		Now:  func() time.Time { now = now.Add(time.Minute); return now },
		Keep: func(r results.Result) error { *kept = append(*kept, r); return nil },
	}
	if name != "" {
		l, known := level.Named(name)
		if !known {
			t.Fatalf("no level %s", name)
		}
		s.Level, c = &l, l.Config
	}
	var err error
	if s.Game, err = play.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Game.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, kept
}

// TestPlain plays a level by lines, with unknown words, hints and steps back, and compares the
// text.
func TestPlain(t *testing.T) {
	s, kept := session(t, "slow-section", play.Config{})
	in := strings.Join([]string{
		"help", "h", "hint", "prove", "1 1", "h", "3", "crash1", "expire", "undo", "1 2 expire",
		"2 2 2 2 2 2 2", "1 1 1 1", "2", "h", "s",
	}, "\n")
	var out bytes.Buffer
	if err := s.Plain(t.Context(), strings.NewReader(in), &out, ""); err != nil {
		t.Fatal(err)
	}
	want := []results.Result{{Steps: 16, Switches: 2, Seconds: 60, Hints: 3, Won: time.Date(2026, 11, 24, 12, 2, 0, 0, time.UTC)}}
	if len(*kept) != 1 || (*kept)[0] != want[0] || !s.Won() {
		t.Errorf("kept %+v, want %+v", *kept, want)
	}
	golden(t, "slow-section.txt", out.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another text (-update writes it):\n%s", path, got)
	}
}

// TestPlainEnds: the game ends at quit, at the end of the input, and when its output is closed.
func TestPlainEnds(t *testing.T) {
	s, kept := session(t, "dead-holder", play.Config{})
	if err := s.Plain(t.Context(), strings.NewReader("1 quit 2 crash1"), io.Discard, "> "); err != nil || s.Won() || len(*kept) != 0 {
		t.Errorf("%v, won %t", err, s.Won())
	}
	if err := s.Plain(t.Context(), strings.NewReader(""), io.Discard, ""); err != nil {
		t.Error(err)
	}
	if err := s.Plain(t.Context(), strings.NewReader(strings.Repeat("x", longestLine+1)), io.Discard, ""); err == nil {
		t.Error("a line without an end was read")
	}
	if err := s.Plain(t.Context(), strings.NewReader("2"), full{}, ""); !errors.Is(err, errFull) {
		t.Errorf("to a full disk: %v", err)
	}
}

// TestPlainStops: if the command is stopped, it does not wait for the next line.
func TestPlainStops(t *testing.T) {
	s, _ := session(t, "dead-holder", play.Config{})
	ctx, stop := context.WithCancel(t.Context())
	keyboard, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	over := make(chan error, 1)
	go func() { over <- s.Plain(ctx, keyboard, io.Discard, "") }()
	if _, err := io.WriteString(typed, "1\n"); err != nil {
		t.Fatal(err)
	}
	stop()
	select {
	case err := <-over:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits on")
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestClaim: a claim wins if the level is unbreakable, is refuted if it is not, and wins nothing
// else.
func TestClaim(t *testing.T) {
	for name, wins := range map[string]bool{"one-process": true, "begin-and-commit": true, "gap-before-expiry": false, "sell-twice": false} {
		s, kept := session(t, name, play.Config{})
		s.Begin()
		a, err := s.Do(t.Context(), "prove")
		if err != nil {
			t.Fatal(err)
		}
		if s.Won() != wins || len(*kept) != map[bool]int{true: 1}[wins] {
			t.Errorf("%s: won %t, kept %+v", name, s.Won(), *kept)
		}
		if want := map[bool]string{true: "You are right", false: "It can be broken"}[wins]; !strings.HasPrefix(a.Text, want) {
			t.Errorf("%s: %s", name, a.Text)
		}
		if strings.Contains(a.Text, "v1:") {
			t.Errorf("%s: the answer to a wrong claim shows the way: %s", name, a.Text)
		}
	}
}

// TestKeepFails: a player that has won is told that the result could not be stored.
func TestKeepFails(t *testing.T) {
	s, _ := session(t, "dead-holder", play.Config{})
	s.Begin()
	s.Keep = func(results.Result) error { return errFull }
	var err error
	for _, said := range []string{"1", "2", "crash1"} {
		_, err = s.Do(t.Context(), said)
	}
	if !errors.Is(err, errFull) || !s.Won() {
		t.Errorf("%v, won %t", err, s.Won())
	}
}

// keyed returns a screen that receives keys without a terminal.
func keyed(t *testing.T, s *Session, width, height int) (m *screen, press func(keys ...string)) {
	t.Helper()
	s.Begin()
	m = newScreen(t.Context(), s)
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m, func(keys ...string) {
		for _, key := range keys {
			if cmd := m.press(key); cmd != nil && key != "q" && key != "ctrl+c" {
				m.Update(cmd())
			}
			lines := strings.Split(m.View().Content, "\n")
			if len(lines) > height {
				t.Errorf("after %s: %d lines in %d", key, len(lines), height)
			}
			for _, line := range lines {
				if w := ansi.StringWidth(line); w > width {
					t.Errorf("after %s: a line of %d in %d: %q", key, w, width, line)
				}
			}
		}
	}
}

func shown(m *screen) string { return ansi.Strip(m.View().Content) }

// TestKeys: a level is won by keys on a screen of 80x24, which shows everything important.
func TestKeys(t *testing.T) {
	s, kept := session(t, "slow-section", play.Config{})
	m, press := keyed(t, s, 80, 24)
	sees := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(shown(m), text) {
				t.Errorf("no %q in\n%s", text, shown(m))
			}
		}
	}
	sees("Slower than the lease", "Par: 15 steps", "> 1: SET shop:lock", "  2: SET shop:lock", "buyer 2 is ready")
	press("right", "enter")
	sees("redis of buyer 2 [##########]", "> 2: SELECT", "switches 0")
	press("u", "1", "1", "1", "2")
	sees("buyer 2 is waiting", "waits for buyer 1", "in a transaction", "has read amount=1", "-> amount=1")
	press("e")
	sees("> expire", "all leases expire")
	press("enter")
	press("e")
	sees("There is no event")
	press("x")
	sees("There is no key x")
	press("7")
	sees("Buyer 7 has nothing")
	press("2", "2", "2", "2", "2", "2", "2", "1", "1", "1", "1")
	sees("oversold: 2 units sold of 1 stocked", "buyer 1: sold, buyer 2: sold", "again: shop explore setnx-ttl --replay", "Won: 16 steps, 2 switches. Par is 15", "Source: Kleppmann", "Next: shop play --level")
	press("u", "r")
	sees("step 0   switches 0")
	if len(*kept) != 1 || (*kept)[0].Steps != 16 {
		t.Errorf("kept %+v", *kept)
	}
}

// TestSizes: on small and large screens everything fits, with four buyers and with the many
// commands of a lock on several nodes.
func TestSizes(t *testing.T) {
	for _, c := range []play.Config{
		{Strategy: "none", Buyers: 4, Stock: 2},
		{Strategy: "redlock", Events: []explore.Event{explore.Expire, explore.Crash, explore.Forget}},
	} {
		s, _ := session(t, "", c)
		for _, size := range [][2]int{{40, 10}, {80, 24}, {132, 43}, {250, 80}} {
			m, press := keyed(t, s, size[0], size[1])
			press("?", "1", "1", "enter", "2", "enter", "e", "e", "enter", "tab", "shift+tab", "u", "r")
			if !strings.Contains(shown(m), "q quit") {
				t.Errorf("%v: the keys are not on the screen:\n%s", size, shown(m))
			}
		}
	}
}

// TestScreen wins the level with the real program, from its keys to its end.
func TestScreen(t *testing.T) {
	s, kept := session(t, "dead-holder", play.Config{})
	keys, typed := io.Pipe()
	var out bytes.Buffer
	over := make(chan error, 1)
	go func() {
		over <- s.Screen(t.Context(), keys, &out, tea.WithWindowSize(80, 24), tea.WithEnvironment([]string{"TERM=xterm-256color", "NO_COLOR=1"}))
	}()
	if _, err := io.WriteString(typed, "12e\rq"); err != nil { // faster than any game
		t.Fatal(err)
	}
	select {
	case err := <-over:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("q does not end it")
	}
	if len(*kept) != 1 || (*kept)[0].Steps != 3 {
		t.Errorf("kept %+v", *kept)
	}
	if !strings.HasSuffix(out.String(), "again: shop explore setnx --replay v1:setnx:b2:s1:1.2.crash1\n") {
		t.Errorf("the end is not left on the terminal: %q", out.String()[max(0, out.Len()-300):])
	}
	for _, colour := range []string{"\x1b[31m", "\x1b[32m"} {
		if strings.Contains(out.String(), colour) {
			t.Errorf("NO_COLOR is set, and there is %q", colour)
		}
	}
}

// TestScreenStops: if the command is stopped, the screen ends, too.
func TestScreenStops(t *testing.T) {
	s, _ := session(t, "dead-holder", play.Config{})
	ctx, stop := context.WithCancel(t.Context())
	keys, _ := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- s.Screen(ctx, keys, io.Discard, tea.WithWindowSize(80, 24)) }()
	stop()
	select {
	case err := <-over:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}
