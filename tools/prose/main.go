// Command prose checks the language of a module's Markdown pages and Go comments, and the links
// between the pages. It prints FILE:LINE: rule: the sentence, and exits with 1 if a rule reports
// anything, and with 2 if it cannot read the files.
//
//	prose [-all] FOLDER
//
// Vale has rules of this kind. As a Go module (github.com/vale-cli/vale/v3 v3.21.0) it brings 195
// packages, among them C parsers, and builds in 44 s of processor time. This command builds in
// seconds.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"
)

// unfinishedFile lists the files, and the folders without their subfolders, that have not been rewritten
// yet, one a line.
const unfinishedFile = "tools/prose/unfinished.txt"

func main() {
	all := flag.Bool("all", false, "also report the paths in "+unfinishedFile)
	flag.Parse()
	findings, err := run(flag.Arg(0), *all)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

func run(folder string, all bool) ([]finding, error) {
	paths, err := projectFiles(folder)
	if err != nil {
		return nil, err
	}
	root := os.DirFS(folder)
	findings, err := check(root, paths)
	if err != nil || all {
		return findings, err
	}
	list, err := fs.ReadFile(root, unfinishedFile)
	if err != nil {
		return nil, err
	}
	return withoutUnfinished(findings, strings.Split(string(list), "\n")), nil
}

// projectFiles returns the paths of the files that git tracks or would add, relative to folder.
func projectFiles(folder string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = folder
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var paths []string
	for name := range bytes.SplitSeq(out, []byte{0}) {
		info, err := os.Stat(folder + "/" + string(name)) // git also lists deleted files
		if err == nil && info.Mode().IsRegular() {
			paths = append(paths, string(name))
		}
	}
	return paths, nil
}

// withoutUnfinished removes the findings of the listed paths. It reports each listed path that has
// none, so that the list can only shrink.
func withoutUnfinished(findings []finding, list []string) []finding {
	var kept []finding
	used := make([]bool, len(list))
	for _, f := range findings {
		listed := false
		for i, name := range list {
			if name != "" && (f.file == name || path.Dir(f.file) == name) {
				used[i], listed = true, true
			}
		}
		if !listed {
			kept = append(kept, f)
		}
	}
	for i, name := range list {
		if name != "" && !used[i] {
			kept = append(kept, finding{unfinishedFile, i + 1, "unfinished", name + " has no finding: remove this line"})
		}
	}
	return kept
}
