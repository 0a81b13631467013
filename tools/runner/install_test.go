package runner

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestInstall pipes tools/ci/install.sh into sh, without a checkout, with several states of the
// releases page.
func TestInstall(t *testing.T) {
	t.Parallel()
	archive := "shop_1.0.0_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	for name, c := range map[string]struct {
		version string
		change  func(t *testing.T, releases string)
		code    int
		want    string
	}{
		"newest":        {version: "latest", want: "shop"},
		"moving tag":    {version: "v1", want: "shop"},
		"another major": {version: "v2", code: 2, want: "no release v2 for Linux"},
		"version 10 is not v1": {version: "v1", code: 2, want: "no release v1 for Linux", change: func(t *testing.T, releases string) {
			file := filepath.Join(releases, "latest/download/checksums.txt")
			write(t, file, strings.Replace(read(t, file), "shop_1.0.0", "shop_10.0.0", 1))
		}},
		"exact version": {version: "v1.0.0", want: "shop", change: func(t *testing.T, releases string) {
			if err := os.CopyFS(filepath.Join(releases, "download/v1.0.0"), os.DirFS(filepath.Join(releases, "latest/download"))); err != nil {
				t.Fatal(err)
			}
		}},
		"unknown version": {version: "v1.2.3", code: 2, want: "no release v1.2.3 for Linux"},
		"tampered": {version: "v1", code: 2, want: "nothing was installed", change: func(t *testing.T, releases string) {
			file := filepath.Join(releases, "latest/download", archive)
			write(t, file, read(t, file)+"x")
		}},
		"archive missing": {version: "v1", code: 2, want: "cannot download", change: func(t *testing.T, releases string) {
			if err := os.Remove(filepath.Join(releases, "latest/download", archive)); err != nil {
				t.Fatal(err)
			}
		}},
		"page down": {version: "v1", code: 2, want: "no release v1 for Linux", change: func(t *testing.T, releases string) {
			if err := os.RemoveAll(releases); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(releases())); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, copied)
			}
			dir := t.TempDir() // without an oversell.yaml, so it asks for no servers
			pipe := "sh -s " + c.version + " <" + filepath.Join(root(), "tools/ci/install.sh")
			code, out := newMachine(t).run(t, dir, newMachine(t).environ("OVERSELL_RELEASES=file://"+copied), "sh", "-c", pipe)
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, c.code, c.want, out)
			}
			if _, err := os.Stat(filepath.Join(dir, ".oversell/shop")); (err == nil) != (c.code == 0) {
				t.Errorf("shop in the folder: %v", err)
			}
		})
	}
}
