package main

import (
	"encoding/json"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
)

// TestVersion: the built program names its toolchain and its target in one line, the same with --version, and in JSON.
func TestVersion(t *testing.T) {
	t.Parallel()
	text := printed(t, shoptest.Command(t, "version"))
	if flag := printed(t, shoptest.Command(t, "--version")); flag != text {
		t.Errorf("shop --version prints %q, and shop version %q", flag, text)
	}
	if !strings.HasSuffix(text, runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("shop version prints %q, want one line that ends with the toolchain", text)
	}
	var b struct{ Version, Go, OS, Arch string }
	if err := json.Unmarshal([]byte(printed(t, shoptest.Command(t, "version", "--json"))), &b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "shop "+b.Version+" (") || b.Go != runtime.Version() || b.OS != runtime.GOOS || b.Arch != runtime.GOARCH {
		t.Errorf("the JSON is %+v, and the text %q", b, text)
	}
}

// printed returns what a command prints on standard output.
func printed(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.Output()
	if err != nil {
		t.Fatal(c.Args, err)
	}
	return string(out)
}
