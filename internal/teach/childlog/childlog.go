// Package childlog keeps the beginning of what a child process writes, and finds why it ended.
package childlog

import (
	"bytes"
	"strings"
	"sync"
)

// A Log keeps the first Most bytes: a child that prints without end must not fill memory. Its
// methods may be called by several goroutines.
type Log struct {
	Most int

	mu   sync.Mutex
	text bytes.Buffer
}

// Write is io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b[:min(len(b), l.Most-l.text.Len())])
	return len(b), nil
}

// String returns what was kept so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Fatal finds the line by which Go says that the process ended by itself; "" if there is none.
func Fatal(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return ""
}
