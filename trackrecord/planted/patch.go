package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A patch is one bug, or a control: a harmless change that looks like a bug. Its file NAME.patch has a header,
// followed by the diff for `git apply`.
type patch struct {
	name, file string

	class       string // number of the bug's class; "control" is harmless
	area        string // part of the code: a family of lock strategies, or the classroom
	description string // description of the bug, for the table
	source      string // source of the idea
	run         []string
	wantOutput  *regexp.Regexp // expected in the instrument's output
}

// control reports whether the patch is a control, in which the instrument must find no bug.
func (p patch) control() bool { return p.class == "control" }

// The classes of bugs are numbered from 1.
const classes = 15

// readPatches reads the named patches of a folder, in that order. Without names it reads all
// patches, sorted by name.
func readPatches(folder string, names []string) (patches []patch, _ error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		files = nil
	}
	for _, name := range names {
		files = append(files, filepath.Join(folder, strings.TrimSuffix(filepath.Base(name), ".patch")+".patch"))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		p, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		p.name, p.file = strings.TrimSuffix(filepath.Base(file), ".patch"), file
		patches = append(patches, p)
	}
	return patches, nil
}

// parse reads the header: "Key: value" lines before the first "diff " line.
func parse(text string) (p patch, err error) {
	header, _, found := strings.Cut(text, "\ndiff ")
	if !found {
		return p, fmt.Errorf("it has no difference")
	}
	fields := map[string]string{}
	for line := range strings.Lines(header + "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		fields[key] = value
	}
	for _, key := range []string{"Class", "Where", "Wrong", "Source", "Run", "Says"} {
		if fields[key] == "" {
			return p, fmt.Errorf("its header has no %q line", key+":")
		}
	}
	p.class, p.area, p.description, p.source = fields["Class"], fields["Where"], fields["Wrong"], fields["Source"]
	if n, err := strconv.Atoi(p.class); !p.control() && (err != nil || n < 1 || n > classes) {
		return p, fmt.Errorf("its class is %q: 1 to %d, or control", p.class, classes)
	}
	p.run = strings.Fields(fields["Run"])
	if len(p.run) < 2 || p.run[0] != "shop" && (p.run[0] != "go" || p.run[1] != "test") {
		return p, fmt.Errorf("its command is %q; want shop or go test", fields["Run"])
	}
	p.wantOutput, err = regexp.Compile(fields["Says"])
	return p, err
}

// judge compares the result of the instrument with the expectation. A bug counts as caught after exit code 1
// with the expected output. Exit code 2 is a failure of the instrument itself. A control needs exit code 0.
func (p patch) judge(code int, printed string) (verdict string, ok bool) {
	said := p.wantOutput.FindString(printed)
	switch {
	case p.control() && code == 0 && said != "":
		return "silent", true
	case p.control():
		return fmt.Sprintf("FALSE ALARM: exit %d", code), false
	case code == 1 && said != "":
		return "caught: " + strings.Join(strings.Fields(said), " "), true
	case code == 1:
		return "MISSED: exit 1, and it does not say so", false
	}
	return fmt.Sprintf("MISSED: exit %d", code), false
}
