package process

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// daemon returns a program whose processes leave their session and lose their parent.
func daemon(mark int) string {
	return fmt.Sprintf("setsid sh -c 'sleep %d & setsid sleep %d & exec sleep %d' & sleep %d", mark, mark, mark, mark)
}

// TestPID: a program's first process has the requested process id, even as it sees itself.
func TestPID(t *testing.T) {
	log := &buffer{}
	p, err := Start(newTestNetwork(t), Command{Line: "echo this is $$ here; exec sleep 1000", Log: log, PID: 7000})
	require.NoError(t, err)
	defer p.Stop()
	require.Eventually(t, "a process id of 70.. is printed", log.has("this is 70"))
	require.NoError(t, p.Refresh())
	if ids := p.PIDs(); len(ids) != 1 || !log.has("this is "+ids[0]+" here")() {
		t.Errorf("ids %q of a program that says: %s", ids, log)
	}
}

// TestKilled: whenever the explorer is killed, its programs end.
func TestKilled(t *testing.T) {
	for _, how := range []string{"space", "host", "bare"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			rounds := 5
			if tier.Quick() {
				rounds = 2
			}
			for range rounds {
				mark := 1_000_000_000 + rand.IntN(1_000_000_000)
				read, write, err := os.Pipe()
				require.NoError(t, err)
				explorer := exec.CommandContext(t.Context(), "/proc/self/exe")
				explorer.Env = append(os.Environ(), "EXPLORER="+how, fmt.Sprint("MARK=", mark))
				explorer.Stdout = write
				require.NoError(t, explorer.Start())
				_ = write.Close()
				lines := bufio.NewReader(read)
				network := ""
				for range 1 + rand.IntN(3) {
					if network, err = lines.ReadString('\n'); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(rand.N(10 * time.Millisecond)) // a random moment
				kept := keepers(explorer.Process.Pid)
				if len(kept) == 0 {
					t.Error("no keeper was seen")
				}
				require.NoError(t, explorer.Process.Kill())
				_ = explorer.Wait()
				require.Eventually(t, "all are gone", func() bool {
					left := running(fmt.Sprint(mark))
					for _, pid := range kept {
						if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(string(b), keeperName) {
							left = append(left, pid)
						}
					}
					return len(left) == 0
				})
				require.Eventually(t, "nobody uses its network", func() bool {
					return how != "space" || len(inNetwork(strings.TrimSpace(network))) == 0
				})
				_ = read.Close()
			}
		})
	}
}

// inNetwork returns the processes in the given network namespace.
func inNetwork(name string) (found []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == name {
			found = append(found, link)
		}
	}
	return found
}

// explorer starts programs until it is killed, and prints the network of each.
func explorer(how string) {
	var mark int
	_, err := fmt.Sscan(os.Getenv("MARK"), &mark)
	for err == nil {
		var s *Network
		if how == "space" {
			if s, err = NewNetwork(); err != nil {
				break
			}
		}
		p := (*Program)(nil)
		if how == "bare" {
			p, err = startBare(Command{Line: daemon(mark)})
		} else {
			p, err = Start(s, Command{Line: daemon(mark)})
		}
		if err == nil {
			network, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.keeper.pid))
			fmt.Println(network)
		}
	}
	panic(err)
}

// startBare starts a program as on a machine without namespaces.
func startBare(c Command) (*Program, error) {
	log, write, err := newOutput(c.Log)
	if err != nil {
		return nil, err
	}
	defer write.Close()
	k, err := startKeeper(write, 0)
	if err != nil {
		return nil, err
	}
	return k.start(c, false, log)
}

// TestStop: when Stop returns, no process is left and the log is complete. Stop may be called again.
func TestStop(t *testing.T) {
	starts := map[string]func(Command) (*Program, error){
		"space": func(c Command) (*Program, error) { return Start(newTestNetwork(t), c) },
		"host":  func(c Command) (*Program, error) { return Start(nil, c) },
		"bare":  startBare,
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			mark := 1_000_000_000 + rand.IntN(1_000_000_000)
			log := &buffer{}
			p, err := start(Command{Line: "echo begin >&2; " + daemon(mark), Log: log})
			require.NoError(t, err)
			// Three daemons and one child. The shells wait, or were replaced.
			require.Eventually(t, "the daemons run", func() bool { return len(running("sleep\x00"+fmt.Sprint(mark))) == 4 })
			if err := p.Err(); err != nil {
				t.Errorf("it runs, and has ended: %v", err)
			}
			p.Stop()
			if left := running(fmt.Sprint(mark)); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			p.Stop()
			if got := log.String(); got != "begin\n" {
				t.Errorf("log %q", got)
			}
			if err := p.Err(); err == nil || err.Error() != "signal: killed" {
				t.Errorf("it ended by %v", err)
			}
			if !p.Asleep() {
				t.Error("one that is gone runs")
			}
		})
	}
}

// TestEnded: the end of the first process is reported, and its children continue to run until Stop.
func TestEnded(t *testing.T) {
	s := newTestNetwork(t)
	for line, want := range map[string]string{
		"exit 3":                 "exit status 3",
		"true":                   "exit status 0",
		"kill -9 $$":             "signal: killed",
		"there-is-no-such --x=1": "exit status 127",
		"A=7 sh -c 'exit $A'":    "exit status 7",
		"sh -c 'exit 4' | cat":   "exit status 0",
		"sh -c 'exit 5'":         "exit status 5",
		"  sh -c 'exit 6' >&2 ":  "exit status 6",
	} {
		p, log := begin(t, s, line)
		<-p.Done()
		if err := p.Err(); err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
		if line[0] == 't' && want == "exit status 127" {
			require.Eventually(t, "the shell says why", log.has("there-is-no-such: ")) // "not found", or a folder that the user may not read
		}
	}
	p, _ := begin(t, s, "sleep 987002 & true")
	<-p.Done()
	require.Eventually(t, "it lives on", func() bool { return len(running("sleep\x00987002")) == 1 })
	require.Eventually(t, "and is a part of the program", func() bool { return p.Asleep() && len(p.tree.procs) == 1 })
	p.Stop()
	if left := running("987002"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestCommand checks the working directory, the environment and the user of a command.
func TestCommand(t *testing.T) {
	s, dir := newTestNetwork(t), t.TempDir()
	log := &buffer{}
	p, err := Start(s, Command{Line: "pwd; echo $X; id -u; id -un; cat; grep CapEff /proc/self/status", Dir: dir, Env: []string{"X=y", "PATH=/usr/bin:/bin"}, Log: log})
	require.NoError(t, err)
	<-p.Done()
	p.Stop()
	lines := strings.Split(log.String(), "\n")
	name, _ := exec.Command("id", "-un").Output()
	if want := []string{dir, "y", fmt.Sprint(os.Getuid()), strings.TrimSpace(string(name))}; len(lines) < 5 || strings.Join(lines[:4], " ") != strings.Join(want, " ") {
		t.Errorf("got %q, want %q", lines, want)
	}
	if os.Getuid() != 0 && lines[4] != "CapEff:\t0000000000000000" {
		t.Errorf("the program may do more than its user: %s", lines[4])
	}
	if _, err := Start(s, Command{Line: "true", Dir: dir + "/none"}); !errors.Is(err, os.ErrNotExist) && (err == nil || !strings.Contains(err.Error(), "no such file")) {
		t.Errorf("no such folder: %v", err)
	}
	if left := keepers(s.keeper.pid); len(left) > 0 {
		t.Errorf("the keeper of what did not start is left: %v", left)
	}
}

// TestLog: a program can write any amount without blocking, and its log is complete.
func TestLog(t *testing.T) {
	log := &buffer{}
	p, err := Start(nil, Command{Line: "head -c 5000000 /dev/zero; echo end >&2", Log: log})
	require.NoError(t, err)
	<-p.Done()
	p.Stop()
	if got := log.String(); len(got) != 5_000_004 || !strings.HasSuffix(got, "\x00end\n") {
		t.Errorf("%d bytes", len(got))
	}
}

// TestLine: a plain command replaces the shell.
func TestLine(t *testing.T) {
	env := []string{"PATH=/nowhere:/usr/bin:/bin"}
	for in, want := range map[string]string{
		"sleep 1":           "exec sleep 1",
		" sleep '1 2' >x ":  "exec sleep '1 2' >x",
		"/bin/sleep 1":      "exec /bin/sleep 1",
		"./server":          "exec ./server",
		"cd x && sleep 1":   "",
		"sleep 1; sleep 2":  "",
		"A=1 sleep 1":       "",
		"sleep 1 &":         "",
		"sleep $(cat x)":    "",
		"nosuchprogram x":   "",
		"'sleep' 1":         "",
		"~/bin/server":      "",
		"sleep 1\nsleep 2":  "",
		"":                  "",
		"! true":            "",
		"exec sleep 1":      "",
		"$HOME/bin/x start": "",
	} {
		if want == "" {
			want = in
		}
		if got := line(message{Line: in, Env: env}); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestAttach: a running program is observed and not changed.
func TestAttach(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 987003; exit 3")
	require.NoError(t, cmd.Start())
	p, err := Attach(cmd.Process.Pid)
	require.NoError(t, err)
	require.Eventually(t, "it sleeps with its child", func() bool { return p.Asleep() && len(p.tree.procs) == 2 })
	left, err := Attach(cmd.Process.Pid)
	require.NoError(t, err)
	left.Stop()
	if len(running("sleep\x00987003")) != 1 {
		t.Error("Stop has killed it")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	<-p.Done()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("ended by %v", err)
	}
	for _, pid := range running("sleep\x00987003") {
		if other, err := os.FindProcess(pid); err == nil {
			_ = other.Kill()
		}
	}
	p.Stop()
	if _, err := Attach(cmd.Process.Pid); err == nil {
		t.Error("attached to nobody")
	}
	if os.Getuid() != 0 {
		if _, err := Attach(1); err == nil || !strings.Contains(err.Error(), "run this as root") {
			t.Errorf("attached to another user's: %v", err)
		}
	}
}

// TestNoKeep: a binary that does not call Keep gets an error.
func TestNoKeep(t *testing.T) {
	conn, there, err := channel()
	require.NoError(t, err)
	_ = there.Close() // the same happens when the keeper ends
	if _, err := greet(conn); !errors.Is(err, errKeep) {
		t.Errorf("got %v", err)
	}
}

// TestRemedy: for a user that may not create namespaces, the error is one line with advice.
func TestRemedy(t *testing.T) {
	if !refused(fmt.Errorf("fork/exec: %w", os.ErrPermission)) || refused(errKeep) || refused(nil) {
		t.Error("what is a refusal?")
	}
	if got := remedy(); strings.Contains(got, "\n") || !strings.Contains(got, "root") {
		t.Errorf("got %q", got)
	}
}
