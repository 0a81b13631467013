package localserver

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestKilledStarting: if a SIGKILL arrives while children start, neither they nor their children survive.
// All of them hold the pipe that the test reads, so the end of file means that all have ended.
func TestKilledStarting(t *testing.T) {
	if os.Getenv("STARTER") != "" {
		startMany()
	}
	tier.Test(t, "kills 20 processes while they start servers")
	for range 20 {
		tmp := t.TempDir()
		read, write, err := os.Pipe()
		require.NoError(t, err)
		starter := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledStarting$")
		starter.Env = append(os.Environ(), "STARTER=1", "TMPDIR="+tmp)
		starter.Stdout = write
		require.NoError(t, starter.Start())
		_ = write.Close()
		lines := bufio.NewReader(read)
		require.NoError(t, expect.ErrorOf(lines.ReadString('\n')))
		time.Sleep(rand.N(10 * time.Millisecond)) // any moment will do
		require.NoError(t, starter.Process.Kill())
		_ = starter.Wait()
		require.NoError(t, read.SetReadDeadline(time.Now().Add(20*time.Second)))
		require.NoError(t, expect.ErrorOf(io.Copy(io.Discard, lines)), "a child is left")
		require.Eventually(t, "nothing is left behind", func() bool {
			left, err := filepath.Glob(filepath.Join(tmp, "*"))
			return err == nil && len(left) == 0
		})
		_ = read.Close()
	}
}

// startMany starts children, each with its own child, until it is killed.
func startMany() {
	g, err := NewGroup()
	for err == nil {
		cmd := exec.Command("sh", "-c", "sleep 60 & wait")
		cmd.Stdout = os.Stdout
		_, err = g.Start(cmd)
		fmt.Println("started")
	}
	panic(err)
}
