package localserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

// TestState: the name of a process may contain text that looks like the end of a name and a state.
func TestState(t *testing.T) {
	t.Parallel()
	stat := filepath.Join(t.TempDir(), "stat")
	require.NoError(t, os.WriteFile(stat, []byte("42 (a) T (b) S 1 42 42"), 0o600))
	if s := state(stat); !strings.HasPrefix(s, "S") {
		t.Errorf("the state is %q, want S", s)
	}
	expect.Equal(t, state(stat+"-missing"), "", "the state of a missing file")
}

// TestAwaitStop: a process that has ended runs no code, although its parent has not waited for it.
func TestAwaitStop(t *testing.T) {
	t.Parallel()
	child := exec.Command("true")
	require.NoError(t, child.Start())
	defer func() { _ = child.Wait() }()
	for stat := "/proc/" + strconv.Itoa(child.Process.Pid) + "/stat"; !strings.HasPrefix(state(stat), "Z"); {
		time.Sleep(time.Millisecond)
	}
	expect.NoError(t, awaitStop(child.Process.Pid))
}
