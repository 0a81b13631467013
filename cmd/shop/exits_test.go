package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestExits runs the commands of testdata/exits. A command with an exit code of 2 or more prints one line on
// standard error. With 2, it prints nothing else and changes nothing.
func TestExits(t *testing.T) {
	program := filepath.Join(shoptest.Root(t), "internal/explore/program/testdata/rush/serial.yaml")
	for _, name := range []string{"flags", "rush", "explore"} {
		text := shoptest.Read(t, "cmd/shop/testdata/exits/"+name+".txt")
		t.Run(name, func(t *testing.T) {
			if name != "flags" {
				tier.Test(t, "bursts and searches")
			}
			t.Chdir(t.TempDir())
			for line := range strings.Lines(strings.NewReplacer("TMP", t.TempDir(), "FILE.yaml", program).Replace(text)) {
				if line == "\n" || line[0] == '#' {
					continue
				}
				command, says, _ := strings.Cut(strings.TrimSpace(line), " | ")
				t.Run(command, func(t *testing.T) { testExit(t, strings.Fields(command), says) })
			}
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Errorf("the commands leave %v, %v", left, err)
			}
		})
	}
}

func testExit(t *testing.T, words []string, says string) {
	t.Helper()
	want, err := strconv.Atoi(words[0])
	require.NoError(t, err)
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "·", " ")
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), words[1:], &stdout, &stderr)
	line := strings.HasPrefix(stderr.String(), "shop: ") && strings.Count(stderr.String(), "\n") == 1
	if code != want || !strings.Contains(stdout.String()+stderr.String(), says) || code >= 2 && !line || code == exitHarness && stdout.Len() > 0 {
		t.Errorf("exit %d, want %d and %q: %s%s", code, want, says, &stdout, &stderr)
	}
}
