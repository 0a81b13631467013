package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/tier"
)

// TestAppLong: the length of a schedule is no reason to give it up. Only a buyer that repeats itself
// without any change is.
func TestAppLong(t *testing.T) {
	tier.Soak(t, "starts programs and servers; internal/explore/fold shortens a witness")
	t.Parallel()
	var reads []string
	for n := range 210 {
		reads = append(reads, fmt.Sprintf("SELECT stock + %d FROM items", n))
	}
	long := statementShop{database: "mysql", sql: append(reads, "UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0")}.file(t)
	code, r, stderr := searchFile(t, long, "--max-schedules", "2")
	if code != exitInconclusive || r.Cut > 0 || r.Void > 0 || r.Explored != 2 {
		t.Errorf("exit %d, %d explored, %d cut, %v: %s", code, r.Explored, r.Cut, r.Voids, stderr)
	}
	if code, stdout, stderr := exploreApp(t, long, "--replay", "v1:statements:b2:s1:1*200.2*211.1*11"); code != 0 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	endless := statementShop{database: "mysql", sql: slices.Repeat([]string{"SELECT stock FROM items", "SELECT id FROM items"}, 150)}.file(t)
	code, _, stderr = exploreApp(t, endless)
	const says = `buyer 1 alone: it goes round in circles: it sends the same 2 commands again and again, beginning with "SELECT `
	if code != exitHarness || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d: %s; want %d and %q", code, stderr, exitHarness, says)
	}
}
