package localserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// TestTemplate: the first server leaves a template, even if several start at once, and the servers after it
// start from it. A damaged template is replaced. Without a cache folder every server creates its files.
func TestTemplate(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "") // on Linux, it has priority over HOME
	t.Setenv("HOME", t.TempDir())
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	g := newGroup(t)
	start := func() {
		t.Helper()
		var both sync.WaitGroup
		both.Go(func() {
			expect.NoError(t, expect.ErrorOf(StartMariaDB(g)))
		})
		both.Go(func() {
			expect.NoError(t, expect.ErrorOf(StartPostgres(g)))
		})
		both.Wait()
	}
	var two sync.WaitGroup
	two.Go(start)
	two.Go(start)
	two.Wait()
	first := templates(t, cache)
	if len(first) != 2 {
		t.Fatalf("%q, want one for each database", first)
	}
	start()
	expect.DeepEqual(t, templates(t, cache), first)
	damaged, err := filepath.Glob(filepath.Join(cache, "oversell", "*", "data"))
	if err != nil || len(damaged) != 2 {
		t.Fatalf("%q, %v", damaged, err)
	}
	for _, one := range damaged {
		require.NoError(t, os.RemoveAll(one))
	}
	start()
	if again := templates(t, cache); len(again) != 2 || slices.Equal(first, again) {
		t.Errorf("%q became %q", first, again)
	}
	t.Setenv("HOME", "/dev/null/x")
	start()
}

// templates lists the templates, each with the time and the permissions of its password file. Nothing else may
// be in the cache folder.
func templates(t *testing.T, cache string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(cache, "oversell"))
	require.NoError(t, err)
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(cache, "oversell", e.Name(), secretFile))
		require.NoError(t, err)
		all = append(all, fmt.Sprint(e.Name(), info.ModTime(), info.Mode()))
	}
	return all
}
