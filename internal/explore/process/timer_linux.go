package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// timers returns the armed timers of timerfd_create(2) as waits; threads' time-outs do not include them. An event loop
// resets such a timer repeatedly, so it counts as a loop's wait. The result `has` reports whether there are such
// timers, armed or not.
func (t *tree) timers() (all []wait, has bool) {
	for pid := range t.procs {
		folder := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // the process has ended
		}
		for _, e := range entries {
			if what, err := os.Readlink(folder + "/" + e.Name()); err != nil || what != "anon_inode:[timerfd]" {
				continue
			}
			has = true
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, e.Name()))
			if left := armed(string(text)); err == nil && left > 0 {
				fd, _ := strconv.Atoi(e.Name())
				all = append(all, wait{tid: pid, left: left, at: place{kind: "timerfd", call: fd, pc: uint64(pid), loop: true}})
			}
		}
	}
	return all, has
}

// armed returns the time until a timer fires (proc_pid_fdinfo(5)); 0 if it is not armed.
func armed(fdinfo string) time.Duration {
	_, after, found := strings.Cut(fdinfo, "it_value: (")
	if !found {
		return 0
	}
	var seconds, rest int64
	if _, err := fmt.Sscanf(after, "%d, %d)", &seconds, &rest); err != nil {
		return 0
	}
	return time.Duration(seconds)*time.Second + time.Duration(rest)
}
