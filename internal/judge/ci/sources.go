package ci

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/judge/ci/result"
)

// sourceLines match a file name with a line number in a log, as the stack traces of each language write them.
var sourceLines = []*regexp.Regexp{
	regexp.MustCompile(`File "([^"]+)", line (\d+)`),                                                                               // Python
	regexp.MustCompile(` in ([^\s:]+\.php)(?: on line |:)(\d+)`),                                                                   // PHP
	regexp.MustCompile(`([\w./@~+-]+\.(?:js|mjs|cjs|jsx|ts|tsx|mts|cts|go|py|rb|php|java|kt|scala|cs|rs|ex|exs)):(?:line )?(\d+)`), // the others
}

const mostSources = 10

// sources returns each source line of the repository that the log names. It returns each line once.
func (j *appJob) sources(log string) (found []result.Source) {
	for text := range strings.SplitSeq(strings.ReplaceAll(log, " | ", "\n"), "\n") {
		for _, pattern := range sourceLines {
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				line, err := strconv.Atoi(m[2])
				file := j.source(m[1])
				if err != nil || file == "" || line < 1 || slices.ContainsFunc(found, func(s result.Source) bool { return s.File == file && s.Line == line }) {
					continue
				}
				if found = append(found, result.Source{File: file, Line: line, Text: shortened(text)}); len(found) == mostSources {
					return found
				}
			}
		}
	}
	return found
}

// libraries are folders with third-party code.
var libraries = []string{"node_modules", "vendor", "site-packages", "dist-packages", ".venv"}

// source returns the path of a file relative to the repository; "" if it is outside.
func (j *appJob) source(file string) string {
	file = strings.TrimPrefix(file, "file://")
	if !filepath.IsAbs(file) {
		file = filepath.Join(j.app.App.Dir, file)
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return ""
	}
	inside := relative(j.Root, real)
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() || filepath.IsAbs(inside) {
		return ""
	}
	if slices.ContainsFunc(strings.Split(inside, "/"), func(folder string) bool { return slices.Contains(libraries, folder) }) {
		return ""
	}
	return inside
}

// mostText is the maximum length of a log line in a report, in bytes.
const mostText = 200

func shortened(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "…"
	}
	return text
}

// Files returns the files that match the patterns, each once. A pattern without a match stays in the list, so
// the caller gets an error when it opens that name.
func Files(patterns []string) (files []string) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			found = []string{pattern}
		}
		for _, file := range found {
			file = filepath.Clean(file)
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}
