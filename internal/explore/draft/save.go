package draft

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/judge/report"
)

// FileName is the name of the drafted file in a repository.
const FileName = "oversell.yaml"

// A Result says what Save wrote.
type Result struct {
	Path    string   // "-" is standard output
	From    []string // files that identify the program's language; none if nothing was recognized
	Below   []string // folders with programs of their own, if nothing was recognized
	Guesses []string // keys with values that may be wrong, each with its line
	Missing []string // keys with values that the owner must replace, each with its line
}

// Save drafts oversell.yaml for the repository in dir and writes it to path. The path "" means FileName in dir, and
// "-" means stdout. Save replaces an existing file only if `force` is true. The error is one line.
func Save(dir, path string, force bool, stdout io.Writer) (r Result, err error) {
	if path == "" {
		path = filepath.Join(dir, FileName)
	}
	r.Path = path
	if err := check(dir, path, force); err != nil {
		return r, err
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return r, err
	}
	opened, err := os.OpenRoot(dir)
	if err != nil {
		return r, err
	}
	defer opened.Close()
	root := opened.FS()
	d, err := Read(root, filepath.Base(whole))
	if err != nil {
		return r, err
	}
	text, err := d.YAML()
	if err != nil {
		return r, err
	}
	if r.Guesses, r.Missing, err = app.Marks(text); err != nil {
		return r, fmt.Errorf("the draft is no YAML%w", err)
	}
	if r.From = d.Found; r.From == nil {
		r.Below = Below(root)
	}
	if path == "-" {
		_, err = stdout.Write(text)
		return r, err
	}
	return r, report.Replace(path, text)
}

// check returns an error if Save cannot read the folder or must not write the file.
func check(dir, path string, force bool) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder; name the folder of your program", dir)
	}
	if path == "-" {
		return nil
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if !os.SameFile(info, folder) {
		return fmt.Errorf("--output must be a file in %s, because its commands start in its own folder (got %s)", dir, path)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name a file with --output", path)
	case !force:
		return fmt.Errorf("%s exists and was left unchanged; add --force to replace it, or --output FILE for another name", path)
	}
	return nil
}

// Print writes the findings of Save and the next steps.
func (r Result) Print(out io.Writer) {
	if r.Path != "-" {
		from := "; no known project file is there"
		if r.From != nil {
			from = " from " + strings.Join(r.From, ", ")
		}
		fmt.Fprintf(out, "wrote %s%s\n", r.Path, from)
	}
	if r.Below != nil {
		fmt.Fprintf(out, "programs are in these folders; run the command for one of them: %s\n", strings.Join(r.Below, ", "))
	}
	for _, list := range []struct {
		label string
		keys  []string
	}{{"to fill in", r.Missing}, {"guesses to check", r.Guesses}} {
		if list.keys != nil {
			fmt.Fprintf(out, "%s: %s\n", list.label, strings.Join(list.keys, ", "))
		}
	}
}
