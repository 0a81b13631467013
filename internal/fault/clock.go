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
	"time"
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

func newClock(shim, file string) (*clock, error) {
	c := &clock{file: file, env: []string{"LD_PRELOAD=" + shim, "CLOCK_OFFSET_FILE=" + file}}
	return c, c.set(0)
}

// environ is the environment of the server; none where its clock cannot be moved.
func (c *clock) environ() []string {
	if c == nil {
		return nil
	}
	return c.env
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
