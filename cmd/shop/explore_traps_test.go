package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTraps: programs about which an explorer is easily wrong, see testdata/traps. Orders that
// were left out would hide the mistakes of the first two. The others are sound: a wait that was
// not seen, or was taken for one that never ends, would be a false alarm.
func TestTraps(t *testing.T) {
	for _, c := range []struct {
		mode   string
		args   []string
		broken bool
		quick  bool
	}{
		{mode: "asks-twice", broken: true, quick: true},
		{mode: "gives-up", broken: true, quick: true},
		{mode: "closes", args: []string{"--buyers", "3", "--max-schedules", "40"}, quick: true},
		{mode: "sleeps", args: []string{"--max-schedules", "4"}},
		{mode: "ticks"},
		{mode: "timer"},
		{mode: "endless", args: []string{"--events", "timeout"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			if !c.quick {
				soakOnly(t)
			}
			_, r, stderr := searchFile(t, trap(t, c.mode), c.args...)
			if r.Violations > 0 != c.broken || r.Void > 0 || r.Explored < 2 {
				t.Errorf("%d of %d orders break, %d void (%v): %s", r.Violations, r.Explored, r.Void, r.Voids, stderr)
			}
			t.Logf("%d of %d in %.0f s", r.Violations, r.Explored, r.Seconds)
		})
	}
}

// trap writes the description of one.
func trap(t *testing.T, mode string) string {
	t.Helper()
	appCase{needs: []string{"python3"}}.need(t)
	dir, err := filepath.Abs("testdata/traps")
	if err != nil {
		t.Fatal(err)
	}
	file := writeApp(t, fmt.Sprintf(`name: %s
run: python3 %s/shop.py %[1]s
ready: http://127.0.0.1:8080/
mysql: 127.0.0.1:3306
redis: 127.0.0.1:6379
local: true
schema: %[2]s/schema.sql
`, mode, dir), "buyer: POST http://127.0.0.1:8080/buy")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	change := strings.NewReplacer("reset:\n", "reset:\n  redis: flushdb\n")
	if mode == "closes" {
		change = strings.NewReplacer("mysql: 127.0.0.1:3306\nredis: 127.0.0.1:6379", "postgres: 127.0.0.1:5432")
	}
	if err := os.WriteFile(file, []byte(change.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
