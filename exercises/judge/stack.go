package judge

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// code is the learner's code without its exercise. Its methods find the goroutines of this code.
type code struct {
	new New
	pkg string // package of its functions, as in stack traces
}

func newCode(f New) code { return code{f, packageOf(f)} }

// packageOf returns the package of a function, as in stack traces.
func packageOf(f any) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	slash := strings.LastIndex(name, "/")
	dot := strings.Index(name[slash+1:], ".")
	return name[:slash+1+dot]
}

// Place returns the file and line of the topmost line of a stack that is in pkg, or "".
func Place(stack, pkg string) string {
	lines := strings.Split(stack, "\n")
	for i := 0; i+1 < len(lines); i++ {
		if !strings.HasPrefix(lines[i], pkg+".") {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
		return filepath.Base(file)
	}
	return ""
}

// panicked says where the learner's code panicked, for the end of a sentence. It returns "" if the panic was
// not in that code.
func (c code) panicked(stack string) string {
	if place := Place(stack, c.pkg); place != "" {
		return ", at " + place
	}
	return ""
}

// standing says at which line a goroutine of the learner's code is now, for the end of a sentence.
func (c code) standing() string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		if place := Place(stack, c.pkg); place != "" {
			_, state, _ := strings.Cut(stack, "[")
			state, _, _ = strings.Cut(state, "]")
			state, _, _ = strings.Cut(state, ",")
			return fmt.Sprintf(": it is at %s (%s)", place, state)
		}
	}
	return ""
}
