package pulse

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestStopped stops this process with SIGSTOP for a second, as a busy machine does without a
// signal. Stopping another process does not show.
func TestStopped(t *testing.T) {
	const gap = time.Second
	p := Start()
	defer p.Stop()
	before := time.Now()
	stop := func(pid int) {
		t.Helper()
		script := fmt.Sprintf("kill -STOP %d; sleep %.1f; kill -CONT %[1]d", pid, gap.Seconds())
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	other := exec.Command("sh", "-c", "echo started; exec sleep 60")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Signal(syscall.SIGKILL); _ = other.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stop(other.Process.Pid)
	between := time.Now()
	stop(os.Getpid())
	after := time.Now()

	d := p.Delays()
	if got := d.Within(between, after); got < gap*9/10 || got > after.Sub(between) {
		t.Errorf("stopped for %s: delays of %s", gap, got)
	}
	if took, got := between.Sub(before), d.Within(before, between); got > took/2 {
		t.Logf("this machine is busy: delays of %s in %s", got, took)
	} else if d.Longest() < gap*9/10 {
		t.Errorf("the longest delay is %s", d.Longest())
	}
}
