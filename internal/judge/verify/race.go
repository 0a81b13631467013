package verify

import (
	"strings"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// Race marks the cell as one with a data race. report is the output of Go's race detector; ""
// leaves the cell unchanged.
//
// A race contradicts every promise, whatever stock and records say: such a program may do anything
// the next time (The Go Memory Model, https://go.dev/ref/mem).
func (c *Cell) Race(report string) {
	first := firstRace(report)
	if first == nil {
		return
	}
	c.Verdict, c.OK = verdict.Raced, false
	c.DataRace = strings.Join(first, "\n")
	c.Reason = "the race detector reports a data race: " + inOneLine(first)
	c.Evidence = c.evidence()
}

// raceMarks are the first lines of reports: from the detector, and from the runtime, which detects
// some unguarded maps and ends the program.
var raceMarks = []string{"WARNING: DATA RACE", "fatal error: concurrent map"}

// raceFrames is the number of stack frames that are kept. The frames below belong to the HTTP
// libraries.
const raceFrames = 5

// firstRace returns the first report: its two accesses with their stacks; nil if there is none.
func firstRace(text string) (lines []string) {
	stack := 0 // lines of the current stack
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		begins := false
		for _, mark := range raceMarks {
			begins = begins || strings.HasPrefix(line, mark)
		}
		switch {
		case len(lines) == 0 && !begins:
		case strings.HasPrefix(line, "=========="), strings.HasPrefix(line, "Goroutine "), len(lines) > 0 && begins:
			return lines
		case strings.HasPrefix(line, "  "):
			if stack++; stack <= 2*raceFrames {
				lines = append(lines, line)
			}
		default:
			lines, stack = append(lines, line), 0
		}
	}
	return lines
}

// inOneLine formats a report as "Write by goroutine 8: F file.go:9; Previous write ...". It takes
// the first frame of each stack outside the runtime.
func inOneLine(report []string) string {
	var accesses []string
	named := true
	for i, line := range report {
		switch word := strings.TrimSpace(line); {
		case strings.HasPrefix(word, "fatal error: "):
			accesses = append(accesses, strings.TrimPrefix(word, "fatal error: "))
		case strings.Contains(word, " at 0x") && strings.HasSuffix(word, ":"):
			what, rest, _ := strings.Cut(word, " at 0x")
			_, by, _ := strings.Cut(rest, " ")
			accesses = append(accesses, what+" "+by)
			named = false
		case !named && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") && !strings.HasPrefix(word, "runtime."):
			named = true
			accesses[len(accesses)-1] += " " + word[strings.LastIndex(word, "/")+1:]
			if i+1 < len(report) {
				accesses[len(accesses)-1] += " " + place(report[i+1])
			}
		}
	}
	return strings.Join(accesses, "; ")
}

// place shortens a frame's path, such as "/home/me/oversell/internal/lockstrategy/keyed/keyed.go:45
// +0x1c".
func place(line string) string {
	path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if parts := strings.Split(path, "/"); len(parts) > 2 {
		path = strings.Join(parts[len(parts)-2:], "/")
	}
	return path
}
