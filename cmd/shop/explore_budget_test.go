package main

import (
	"strings"
	"testing"
)

// TestAppBudget: a budget below one schedule ends that schedule, and one line says so.
func TestAppBudget(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := exploreApp(t, appCases[0].need(t), "--budget", "1ms")
	if code != exitHarness || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--budget 1ms ended before the first schedule did; raise it, for example to 10ms") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
