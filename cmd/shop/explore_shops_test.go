package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestShopScripts: the scripts of examples/ exit with the code of the tool and delete their folder, also
// if they are interrupted. Without the tool they install nothing. Stand-ins replace the tool and npm.
func TestShopScripts(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not installed")
	}
	bin := t.TempDir()
	tool := filepath.Join(bin, "tool")
	for file, script := range map[string]string{
		filepath.Join(bin, "npm"):  "echo installed",
		filepath.Join(bin, "dpkg"): "", // the packages are there
		tool:                       `[ -f "$3" ] || exit 9; [ -z "${INTERRUPT:-}" ] || kill -TERM $PPID; exit 3`,
	} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, env string
		code      int
		says      string
	}{
		{"the tool's code", "SHOP=" + tool, exitInconclusive, ""},
		{"interrupted", "INTERRUPT=1", 143, ""},
		{"no tool", "SHOP=./none", exitHarness, "./none is not there: build it (go build -o shop ./cmd/shop), or name it with SHOP\n"},
	} {
		for _, script := range []string{"vendure/run.sh", "medusa/run.sh", "tryton/run.sh shelf"} {
			temporary := t.TempDir()
			words := strings.Fields(script)
			cmd := exec.CommandContext(t.Context(), "../../examples/"+words[0], words[1:]...)
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+temporary, "SHOP_DIR=", "SHOP="+tool, c.env)
			code, stdout, stderr := exitOfCommand(t, cmd)
			left, err := os.ReadDir(temporary)
			if says := strings.TrimPrefix(stderr, "installed\n"); code != c.code || says != c.says || stdout != "" || err != nil || len(left) > 0 {
				t.Errorf("%s, %s: exit %d, %q, %q, left %v, %v; want exit %d and %q", script, c.name, code, stdout, stderr, left, err, c.code, c.says)
			}
		}
	}
}
