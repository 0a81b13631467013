package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/exercises/judge"
	"github.com/oversell/oversell/internal/teach/exercise"
)

// TestUnknownCost: where the reference did not run its round trips are no number.
func TestUnknownCost(t *testing.T) {
	var out strings.Builder
	passed := []judge.Check{{Name: "every order", Verdict: judge.Passed}}
	printChecks(&out, exercise.Result{Report: judge.Report{Checks: passed, Trips: 5}})
	if !regexp.MustCompile(`round trips of one buyer, alone +5\.0 +-\n`).MatchString(out.String()) {
		t.Errorf("%s", out.String())
	}
}
