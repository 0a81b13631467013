package fault

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

//go:embed shim/clock.c
var clockSource []byte

// A clock moves the wall clock of one server by an offset. The server loads a shim before its C library; the
// shim adds the offset, which it reads from a shared file. libfaketime does not work with Debian's
// redis-server, which asks for the time before libfaketime is ready.
type clock struct {
	env  []string
	file string
}

// buildShim compiles the shim. It returns an error if the machine has no C compiler.
func buildShim(dir string) (string, error) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return "", errors.New("there is no C compiler (cc) to build the clock's shim with; apt-get install gcc")
	}
	source, shim := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return "", err
	}
	if said, err := exec.Command(compiler, "-shared", "-fPIC", "-O2", "-o", shim, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("the clock's shim does not compile (%w): %.200s", err, strings.Join(strings.Fields(string(said)), " "))
	}
	return shim, nil
}

// clocks holds the clock of each server, by name. A nil *clocks is empty.
type clocks struct {
	dir, shim string
	missing   string // why clocks cannot be moved; "" if they can

	mu  sync.Mutex
	all map[string]*clock
}

func newClocks(g *localserver.Group) (c *clocks, err error) {
	c = &clocks{all: map[string]*clock{}}
	if c.dir, err = g.Dir("clock"); err != nil {
		return nil, err
	}
	if c.shim, err = buildShim(c.dir); err != nil {
		c.missing = err.Error()
	}
	return c, nil
}

// of returns the clock of the named server, or nil if clocks cannot be moved.
func (c *clocks) of(name string) *clock {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[name]
}

// environ makes a clock for the named server and returns the environment variables that load the shim into it.
func (c *clocks) environ(name string) ([]string, error) {
	if c == nil || c.missing != "" {
		return nil, nil
	}
	clock, err := newClock(c.shim, filepath.Join(c.dir, name))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[name] = clock
	return clock.env, nil
}

// newClock returns the clock of a server that is about to start. The server will map `file`, which has the offset.
func newClock(shim, file string) (*clock, error) {
	c := &clock{file: file, env: []string{"LD_PRELOAD=" + shim, "CLOCK_OFFSET_FILE=" + file}}
	return c, c.set(0)
}

// set moves the clock to now plus offset, in whole seconds.
func (c *clock) set(offset time.Duration) error {
	seconds := binary.NativeEndian.AppendUint64(nil, uint64(int64(offset/time.Second)))
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600) // not truncated: the server has it mapped
	if err != nil {
		return err
	}
	_, err = f.WriteAt(seconds, 0)
	return errors.Join(err, f.Close())
}
