package play_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/teach/play"
	"github.com/oversell/oversell/internal/teach/play/child"
)

// TestServe: each request has one answer, in order. A request at a wrong time changes nothing, and
// the end of the input ends the child.
func TestServe(t *testing.T) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- child.Serve(t.Context(), in, out) }()
	ask, hear := json.NewEncoder(requests), json.NewDecoder(answers)
	for _, c := range []struct {
		child.Request
		kind  child.Kind
		moves int // moves so far; -1: there is no game
	}{
		{child.Request{Op: child.Move, Token: "1"}, child.Bad, -1},
		{child.Request{Op: child.Open}, child.Bad, -1},
		{child.Request{Op: child.Open, Config: &play.Config{Strategy: "etcd"}}, child.Missing, -1},
		{child.Request{Op: child.Open, Config: &play.Config{Strategy: "none"}}, "", 0},
		{child.Request{Op: child.Open, Config: &play.Config{Strategy: "none"}}, child.Bad, 0},
		{child.Request{Op: "dance"}, child.Bad, 0},
		{child.Request{Op: child.Move, Token: "1"}, "", 1},
		{child.Request{Op: child.Move, Token: "7"}, child.Bad, 1},
		{child.Request{Op: child.Hint, Effort: play.Effort{Bound: -1}}, "", 1},
		{child.Request{Op: child.Prove, Effort: play.Effort{Bound: -1}}, "", 1},
		{child.Request{Op: child.Undo}, "", 0},
		{child.Request{Op: child.Restart}, "", 0},
	} {
		var a child.Answer
		require.NoError(t, ask.Encode(c.Request))
		for a = (child.Answer{Progress: &child.Progress{}}); a.Progress != nil; {
			a = child.Answer{}
			require.NoError(t, hear.Decode(&a))
		}
		moves := -1
		if a.Position != nil {
			moves = len(a.Position.Tokens)
		}
		if a.Kind != c.kind || (a.Error == "") != (c.kind == "") || strings.Contains(a.Error, "\n") || moves != c.moves {
			t.Errorf("%+v: %q %q after %d moves", c.Request, a.Kind, a.Error, moves)
		}
		if (a.Way != nil) != (c.Op == child.Hint) || (a.Proof != nil) != (c.Op == child.Prove) {
			t.Errorf("%+v: %+v", c.Request, a)
		}
	}
	require.NoError(t, requests.Close())
	expect.NoError(t, <-ended)
}

// TestStop: a search that would take hours ends when it is stopped, and reports its progress.
func TestStop(t *testing.T) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- child.Serve(t.Context(), in, out) }()
	ask, hear := json.NewEncoder(requests), json.NewDecoder(answers)
	say := func(r child.Request) {
		t.Helper()
		require.NoError(t, ask.Encode(r))
	}
	var a child.Answer
	say(child.Request{Op: child.Open, Config: &play.Config{Strategy: "redlock", Buyers: 3, Events: []explore.Event{"expire", "crash"}}})
	if err := hear.Decode(&a); err != nil || a.Error != "" {
		t.Fatal(err, a.Error)
	}
	say(child.Request{Op: child.Prove, Effort: play.Effort{Bound: -1}})
	say(child.Request{Op: child.Stop}) // must not be lost, although the search may not have begun
	for a = (child.Answer{Progress: &child.Progress{}}); a.Progress != nil; {
		a = child.Answer{}
		require.NoError(t, hear.Decode(&a))
	}
	if a.Error != "" || a.Proof == nil || !a.Proof.Stopped || a.Proof.Holds {
		t.Errorf("%q %+v", a.Error, a.Proof)
	}
	require.NoError(t, requests.Close())
	expect.NoError(t, <-ended)
}
