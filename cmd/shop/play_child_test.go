package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/teach/play/child"
)

// TestPlayChildPrints: output of a strategy goes to stderr; stdout has only the game's answers.
func TestPlayChildPrints(t *testing.T) {
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	os.Stdout = in
	c := playChildCommand()
	c.SetArgs([]string{})                       // with nil, cobra takes the arguments of the test program
	c.SetIn(strings.NewReader(`{"op":"undo"}`)) // an invalid request before open still gets an answer
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
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
