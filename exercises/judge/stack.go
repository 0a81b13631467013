package judge

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// code is the learner's program, without its exercise. It alone knows where the goroutines of that code
// are.
type code struct {
	new New
	pkg string // the package of its functions, as stacks name it
}

func newCode(f New) code { return code{f, packageOf(f)} }

// packageOf is the package of a function, as stacks have it.
func packageOf(f any) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	slash := strings.LastIndex(name, "/")
	dot := strings.Index(name[slash+1:], ".")
	return name[:slash+1+dot]
}

// Place finds the uppermost line of the package in a stack: its file and line; "" where there
// is none.
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

// panicked is where the learner's code was, for the end of a sentence; "" where it was elsewhere.
func (c code) panicked(stack string) string {
	if place := Place(stack, c.pkg); place != "" {
		return ", at " + place
	}
	return ""
}

// standing is where a goroutine of the learner's is now, for the end of a sentence.
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
