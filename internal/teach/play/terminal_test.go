package play_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/level"
	"github.com/oversell/oversell/internal/teach/play/results"
	"github.com/oversell/oversell/internal/teach/play/terminal"
)

// session returns a session for a level or a configuration. The result `kept` collects its stored
// results.
func session(t *testing.T, name string, c play.Config) (s *terminal.Session, kept *[]results.Result) {
	t.Helper()
	kept = new([]results.Result)
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	s = &terminal.Session{
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
		expect.NoError(t, s.Game.Close())
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
	require.NoError(t, s.Plain(t.Context(), strings.NewReader(in), &out, ""))
	want := []results.Result{{Steps: 16, Switches: 2, Seconds: 60, Hints: 3, Won: time.Date(2026, 11, 24, 12, 2, 0, 0, time.UTC)}}
	if len(*kept) != 1 || (*kept)[0] != want[0] || !s.Won() {
		t.Errorf("kept %+v, want %+v", *kept, want)
	}
	golden.Compare(t, "testdata/slow-section.txt", out.String())
}

// TestPlainEnds: the game ends at quit, at the end of the input, and when its output is closed.
func TestPlainEnds(t *testing.T) {
	s, kept := session(t, "dead-holder", play.Config{})
	if err := s.Plain(t.Context(), strings.NewReader("1 quit 2 crash1"), io.Discard, "> "); err != nil || s.Won() || len(*kept) != 0 {
		t.Errorf("%v, won %t", err, s.Won())
	}
	expect.NoError(t, s.Plain(t.Context(), strings.NewReader(""), io.Discard, ""))
	if err := s.Plain(t.Context(), strings.NewReader(strings.Repeat("x", 64<<10+1)), io.Discard, ""); err == nil {
		t.Error("a line without an end was read")
	}
	expect.ErrorIs(t, s.Plain(t.Context(), strings.NewReader("2"), full{}, ""), errFull, "to a full disk")
}

// TestPlainStops: if the command is stopped, it does not wait for the next line.
func TestPlainStops(t *testing.T) {
	s, _ := session(t, "dead-holder", play.Config{})
	ctx, stop := context.WithCancel(t.Context())
	keyboard, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	over := make(chan error, 1)
	go func() { over <- s.Plain(ctx, keyboard, io.Discard, "") }()
	require.NoError(t, expect.ErrorOf(io.WriteString(typed, "1\n")))
	stop()
	select {
	case err := <-over:
		expect.ErrorIs(t, err, context.Canceled)
	case <-time.After(time.Minute):
		t.Fatal("it waits on")
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

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
