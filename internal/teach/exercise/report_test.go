package exercise

import (
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises/judge"
)

// TestUnknownCost: if the reference did not run, its round trips are not shown as a number.
func TestUnknownCost(t *testing.T) {
	var out strings.Builder
	passed := []judge.Check{{Name: "every order", Verdict: judge.Passed}}
	Result{Judgement: judge.Judgement{Checks: passed, Trips: 5}}.Print(&out)
	if !regexp.MustCompile(`round trips of one buyer, alone +5\.0 +-\n`).MatchString(out.String()) {
		t.Errorf("%s", out.String())
	}
}
