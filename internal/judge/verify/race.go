package verify

import (
	"strings"

	"github.com/oversell/oversell/internal/judge/verdict"
)

// Race makes the cell one of a data race. report is what the race detector of the Go
// toolchain wrote; "" where it wrote nothing, and then the cell stays what it is.
//
// A race is a contradiction, whatever stock and records say: a program that has one
// may do anything the next time (The Go Memory Model, https://go.dev/ref/mem).
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

// raceMarks begin the reports: of the detector, and of the runtime, which notices some
// unguarded maps by itself and ends the program.
var raceMarks = []string{"WARNING: DATA RACE", "fatal error: concurrent map"}

// raceFrames are those of a stack that are kept: below them are the libraries that serve.
const raceFrames = 5

// firstRace is the first report: its two accesses, each with its stack; nil when there
// is none.
func firstRace(text string) (lines []string) {
	stack := 0 // lines of this one so far
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

// inOneLine is a report as "Write by goroutine 8: F file.go:9; Previous write ...": of
// each stack the first frame that is not the runtime's.
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

// place is a frame's "/home/me/oversell/internal/lockstrategy/keyed/keyed.go:45 +0x1c" without the
// folders that say nothing.
func place(line string) string {
	path, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if parts := strings.Split(path, "/"); len(parts) > 2 {
		path = strings.Join(parts[len(parts)-2:], "/")
	}
	return path
}
