package pulse

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestStopped stops this process with SIGSTOP for a second, which has the same effect as a busy machine. If
// another process stops, the pulse shows no delay.
func TestStopped(t *testing.T) {
	tier.Test(t, "it stops the process for seconds")
	const gap = time.Second
	p := Start()
	defer p.Stop()
	stop := func(pid int) {
		t.Helper()
		script := fmt.Sprintf("kill -STOP %d; sleep %.1f; kill -CONT %[1]d", pid, gap.Seconds())
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	other := exec.Command("sh", "-c", "echo started; exec sleep 60")
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Signal(syscall.SIGKILL); _ = other.Wait() })
	require.NoError(t, expect.ErrorOf(bufio.NewReader(out).ReadString('\n')))
	delays := func(during func()) time.Duration {
		begin := time.Now()
		during()
		return p.Delays().Within(begin, time.Now())
	}
	for try := 1; ; try++ { // a busy machine may delay one of the two by chance
		got, idle := delays(func() { stop(other.Process.Pid) }), delays(func() { time.Sleep(gap) })
		if got <= idle+gap/2 {
			break
		}
		if try == 3 {
			t.Errorf("another process was stopped for %s: delays of %s, and %s when none was", gap, got, idle)
			break
		}
	}
	if got := delays(func() { stop(os.Getpid()) }); got < gap*9/10 {
		t.Errorf("stopped for %s: delays of %s", gap, got)
	}
	for try := 1; ; try++ { // a busy machine may begin the stop late
		ctx, cancel := WithTimeout(t.Context(), gap/2)
		defer cancel()
		stop(os.Getpid())
		early := ctx.Err() != nil
		<-ctx.Done()
		if !early {
			break
		}
		if try == 3 {
			t.Error("a timeout ended although this process was stopped for all of its time")
			break
		}
	}
	if got := p.Delays().Longest(); got < gap*9/10 {
		t.Errorf("the longest delay is %s", got)
	}
}
