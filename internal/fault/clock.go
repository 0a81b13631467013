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

// A clock is the wall clock of one server: its own, moved by an offset. The server
// is started with a shim before its C library that adds the offset in a shared file.
// libfaketime does not work with Debian's redis-server, whose allocator calls the
// clock before that library has found its own functions.
type clock struct {
	env  []string // of the server
	file string
}

// buildShim compiles the shim. It fails where there is no C compiler.
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

// clocks are those of all servers, by name. nil has none.
type clocks struct {
	dir, shim string
	missing   string // why clocks cannot be moved; "" where they can

	mu  sync.Mutex
	all map[string]*clock
}

// newClocks builds the shim, where the machine has a C compiler.
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

// of returns the clock of the server with that name; nil where clocks cannot be moved.
func (c *clocks) of(name string) *clock {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[name]
}

// environ makes the clock of the server with that name and returns its environment.
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

// newClock returns the clock of a server that is about to start, which maps its file.
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
