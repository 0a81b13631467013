package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/teach/play/child"
)

func played(t *testing.T, file, words string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := shoptest.Command(t, append([]string{"play", "--progress", file}, args...)...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(words), &out, &errs
	_ = c.Run()
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// TestPlayLevel: a level is won by words on standard input, and stays won.
func TestPlayLevel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept", "progress.json")
	code, out, _ := played(t, file, "1 1 2 2 2 2 2 1 1 1\n", "--level", "sell-twice")
	if code != 0 || !strings.Contains(out, "oversold: 2 units sold of 1 stocked") || !strings.Contains(out, "That is par.") || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	code, _, stderr := played(t, file, "1 1\n", "--level", "dead-holder")
	if code != exitInconclusive || stderr != "shop: level dead-holder was not won\n" {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, out, _ = played(t, file, "prove", "--level", "one-process")
	if code != 0 || !strings.Contains(out, "You are right, it cannot be broken") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	code, out, _ = played(t, file, "", "--levels", "--json")
	var levels []struct {
		Name, Par string
		Best      *struct{ Steps, Switches, Hints int }
	}
	if err := json.Unmarshal([]byte(out), &levels); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	won := map[string]int{}
	for _, l := range levels {
		if l.Best != nil {
			won[l.Name] = l.Best.Steps
		}
	}
	if len(won) != 2 || won["sell-twice"] != 10 {
		t.Errorf("won %v", won)
	}
	if code, out, _ = played(t, file, "", "--levels"); code != 0 || !strings.Contains(out, "claimed") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// TestPlayChildPrints: output of a strategy goes to stderr; stdout has only the game's answers.
func TestPlayChildPrints(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	os.Stdout = in
	c := playChildCommand()
	c.SetArgs([]string{})                       // with nil, cobra takes the arguments of the test program
	c.SetIn(strings.NewReader(`{"op":"undo"}`)) // an invalid request before open still gets an answer
	require.NoError(t, c.Execute())
	fmt.Fprintln(os.Stdout, "printed by a strategy")
	in.Close()
	answers := json.NewDecoder(out)
	for answers.More() {
		var a child.Answer
		if err := answers.Decode(&a); err != nil || a.Kind != child.Bad {
			t.Fatalf("%+v, %v among the answers", a, err)
		}
	}
}
