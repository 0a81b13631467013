// Package format writes the result of `shop ci` into a folder. Each format is one file here and one line
// in Formats.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/report"
)

// A Format writes one or several files of the folder.
type Format struct {
	What  string // name of the format in error messages
	Files func(r result.Result) ([]File, error)
}

// A File is a file of the folder.
type File struct {
	Name string
	Text []byte
	Cut  string // one line about the parts left out; "" if the file is complete
}

// Formats returns all formats, in the order in which they are written. result.json comes first, so a failure
// of a later format does not lose the verdict.
func Formats() []Format {
	return []Format{
		resultJSON(),
		witnesses(),
		reported("summary.md", "Markdown, for people"),
		reported("report.html", "one HTML page"),
		reported("junit.xml", "JUnit XML"),
		sarifFormat(),
	}
}

// Writes reports whether this package writes files with this name.
func Writes(name string) bool {
	return slices.Contains([]string{resultName, "summary.md", "report.html", "junit.xml", sarifName, qualityName, ignoreName}, name) || strings.HasSuffix(name, WitnessEnding)
}

// WitnessEnding is the ending of the name of a replay file, which contains a breaking schedule.
const WitnessEnding = ".witness.json"

// ignoreName is a file that makes git ignore a new output folder. An existing folder gets none, since it may
// contain files of the repository.
const ignoreName = ".gitignore"

// Prepare creates the folder and deletes the replay files that the result.json of an earlier run names.
func Prepare(folder string) error {
	_, err := os.Stat(folder)
	isNew := errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if isNew {
		if err := os.WriteFile(filepath.Join(folder, ignoreName), []byte("*\n"), 0o666); err != nil {
			return err
		}
	}
	earlier, err := result.Read(filepath.Join(folder, resultName))
	if err != nil { // no earlier result, or a result of another version
		return nil
	}
	for _, c := range earlier.Checks {
		if c.Witness.HasFile() && c.Witness.File == filepath.Base(c.Witness.File) {
			if err := os.Remove(filepath.Join(folder, c.Witness.File)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// Write writes every file. An error in one file does not affect the others. Write calls `warn` for each file
// that it had to shorten.
func Write(folder string, r result.Result, warn func(format string, args ...any)) error {
	var errs []error
	for _, f := range Formats() {
		files, err := f.Files(r)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.What, err))
		}
		for _, one := range files {
			if one.Cut != "" {
				warn("%s: %s", one.Name, one.Cut)
			}
			errs = append(errs, report.Replace(filepath.Join(folder, one.Name), one.Text))
		}
	}
	return errors.Join(errs...)
}

// resultName is the name of the file that a later run reads with --baseline.
const resultName = "result.json"

func resultJSON() Format {
	return Format{What: "JSON, for --baseline and other programs", Files: func(r result.Result) ([]File, error) { return inJSON(resultName, r) }}
}

func inJSON(name string, value any) ([]File, error) {
	var text bytes.Buffer
	err := report.JSON(&text, value)
	return []File{{Name: name, Text: text.Bytes()}}, err
}

// reported returns the format that the flag --report writes for this file name.
func reported(name, what string) Format {
	return Format{What: what, Files: func(r result.Result) ([]File, error) {
		as, err := report.ByEnding(name)
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		err = as.Write(&text, r.Document())
		return []File{{Name: name, Text: text.Bytes()}}, err
	}}
}

func witnesses() Format {
	return Format{What: "a file for explore --replay for each break", Files: func(r result.Result) (files []File, _ error) {
		for _, c := range r.Checks {
			if !c.Witness.HasFile() {
				continue
			}
			one, err := inJSON(c.Witness.File, c.Witness.Saved)
			if err != nil {
				return files, err
			}
			files = append(files, one...)
		}
		return files, nil
	}}
}
