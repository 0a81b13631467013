package instance

import (
	"regexp"
	"strings"
)

// frame matches a line of a stack trace: of Node and Java ("at"), PHP ("#0"), Ruby ("from") and Python ("File").
var frame = regexp.MustCompile(`^(?:\s+at |\s*\.\.\. \d+ more|Stack trace:|#\d+ |\s+from |\s+File ")`)

// around returns at most n of the lines: the last exception, with the part of its stack that is nearest to the
// program's own code. If there is no exception, it returns the last lines.
func around(lines []string, n int) []string {
	for i := len(lines) - 1; i >= 0; i-- {
		switch {
		case frame.MatchString(lines[i]) || strings.HasPrefix(lines[i], "Traceback ") || strings.HasPrefix(lines[i], " ") || strings.HasPrefix(lines[i], "\t"):
		case i+1 < len(lines) && frame.MatchString(lines[i+1]): // the exception's stack follows
			return lines[i:min(i+n, len(lines))]
		case i > 0 && inPython(lines[:i]):
			return lines[max(0, i+1-n) : i+1]
		}
	}
	return lines[max(0, len(lines)-n):]
}

// inPython reports whether the lines end within a stack trace of Python, which names the exception last.
func inPython(lines []string) bool {
	for i := len(lines) - 1; i >= 0 && strings.HasPrefix(lines[i], " "); i-- {
		if strings.HasPrefix(lines[i], `  File "`) {
			return true
		}
	}
	return false
}
