package child

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/teach/play"
)

func TestMain(m *testing.M) { exploretest.Main(m) }

// TestServe: each request has one answer, in order. A request at a wrong time changes nothing, and
// the end of the input ends the child.
func TestServe(t *testing.T) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), in, out) }()
	ask, hear := json.NewEncoder(requests), json.NewDecoder(answers)
	for _, c := range []struct {
		Request
		kind  Kind
		moves int // so far; -1: there is no game
	}{
		{Request{Op: Move, Token: "1"}, Bad, -1},
		{Request{Op: Open}, Bad, -1},
		{Request{Op: Open, Config: &play.Config{Strategy: "etcd"}}, Missing, -1},
		{Request{Op: Open, Config: &play.Config{Strategy: "none"}}, "", 0},
		{Request{Op: Open, Config: &play.Config{Strategy: "none"}}, Bad, 0},
		{Request{Op: "dance"}, Bad, 0},
		{Request{Op: Move, Token: "1"}, "", 1},
		{Request{Op: Move, Token: "7"}, Bad, 1},
		{Request{Op: Hint, Effort: play.Effort{Bound: -1}}, "", 1},
		{Request{Op: Prove, Effort: play.Effort{Bound: -1}}, "", 1},
		{Request{Op: Undo}, "", 0},
		{Request{Op: Restart}, "", 0},
	} {
		var a Answer
		if err := ask.Encode(c.Request); err != nil {
			t.Fatal(err)
		}
		for a = (Answer{Progress: &Progress{}}); a.Progress != nil; {
			a = Answer{}
			if err := hear.Decode(&a); err != nil {
				t.Fatal(err)
			}
		}
		moves := -1
		if a.Position != nil {
			moves = len(a.Position.Tokens)
		}
		if a.Kind != c.kind || (a.Error == "") != (c.kind == "") || strings.Contains(a.Error, "\n") || moves != c.moves {
			t.Errorf("%+v: %q %q after %d moves", c.Request, a.Kind, a.Error, moves)
		}
		if (a.Way != nil) != (c.Op == Hint) || (a.Proof != nil) != (c.Op == Prove) {
			t.Errorf("%+v: %+v", c.Request, a)
		}
	}
	if err := requests.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestStop: a search that would take hours ends when it is stopped, and reports its progress.
func TestStop(t *testing.T) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), in, out) }()
	ask, hear := json.NewEncoder(requests), json.NewDecoder(answers)
	say := func(r Request) {
		t.Helper()
		if err := ask.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	var a Answer
	say(Request{Op: Open, Config: &play.Config{Strategy: "redlock", Buyers: 3, Events: []explore.Event{"expire", "crash"}}})
	if err := hear.Decode(&a); err != nil || a.Error != "" {
		t.Fatal(err, a.Error)
	}
	say(Request{Op: Prove, Effort: play.Effort{Bound: -1}})
	say(Request{Op: Stop}) // sent at once: it must not be lost
	for a = (Answer{Progress: &Progress{}}); a.Progress != nil; {
		a = Answer{}
		if err := hear.Decode(&a); err != nil {
			t.Fatal(err)
		}
	}
	if a.Error != "" || a.Proof == nil || !a.Proof.Stopped || a.Proof.Holds {
		t.Errorf("%q %+v", a.Error, a.Proof)
	}
	if err := requests.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
