package measure

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// tickMS is the length of a tick in /proc/PID/stat: there are 100 per second on every Linux (proc(5), _SC_CLK_TCK).
const tickMS = 10

// CPUTime returns the processor time so far of this process and of its running descendants, in milliseconds. On
// systems other than Linux it returns an error.
func CPUTime() (ms float64, _ error) {
	if runtime.GOOS != "linux" {
		return 0, errors.New("processor time is read from /proc: this needs Linux")
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	all := map[int]process{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		if p, err := parseStat(text); err == nil {
			all[p.id] = p
		}
	}
	self := os.Getpid()
	for _, p := range all {
		if p.id == self || descends(all, p.id, self) {
			ms += p.ms
		}
	}
	return ms, nil
}

// machineTime returns the processor time of all programs since the machine started, in
// milliseconds: the first line of /proc/stat without idle and iowait (proc(5)).
func machineTime() (ms float64, _ error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", first)
	}
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // user, nice, system, irq, softirq, steal
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, err
		}
		ms += n * tickMS
	}
	return ms, nil
}

// process is the content of a file /proc/PID/stat.
type process struct {
	id, parent int
	ms         float64
}

// parseStat parses "42 (shop) S 1 ...". The name may contain spaces and brackets.
func parseStat(text []byte) (p process, err error) {
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if from < 0 || to < from {
		return p, fmt.Errorf("no name in %q", text)
	}
	if p.id, err = strconv.Atoi(strings.TrimSpace(string(text[:from]))); err != nil {
		return p, err
	}
	fields := strings.Fields(string(text[to+1:])) // the first of these is the third field, the state
	if len(fields) < 13 {
		return p, fmt.Errorf("%d fields after the name", len(fields))
	}
	if p.parent, err = strconv.Atoi(fields[1]); err != nil {
		return p, err
	}
	for _, ticks := range fields[11:13] { // utime, stime
		n, err := strconv.ParseFloat(ticks, 64)
		if err != nil {
			return p, err
		}
		p.ms += n * tickMS
	}
	return p, nil
}

func descends(all map[int]process, id, from int) bool {
	for steps := 0; steps < 100; steps++ {
		p, there := all[id]
		if !there {
			return false
		}
		if p.parent == from {
			return true
		}
		id = p.parent
	}
	return false
}
