// Package childlog keeps the beginning of a child process's output, and finds in it why the child ended.
package childlog

import (
	"bytes"
	"strings"
	"sync"
)

// A Log keeps only as many bytes as its field Most says, so that a child that prints without end
// does not fill memory. Its methods may be called by several goroutines.
type Log struct {
	Most int

	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b[:min(len(b), l.Most-l.text.Len())])
	return len(b), nil
}

// String returns the output kept so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Fatal returns the line of a child's output that reports a panic or a fatal error, or "".
func Fatal(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
	}
	return ""
}
