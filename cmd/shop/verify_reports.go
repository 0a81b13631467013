package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/verify"
)

// A reportFile is a report that is asked for by a path.
type reportFile struct {
	flag, what, path string
	write            func(verify.Report, io.Writer) error
}

// htmlPage links from where it lies.
func htmlPage(r verify.Report, w io.Writer) error {
	folder := "."
	if f, ok := w.(*os.File); ok && f != os.Stdout {
		folder = filepath.Dir(f.Name())
	}
	return r.HTML(w, folder)
}

// checkReports finds out before a quarter of an hour is spent whether the reports
// can be written. It changes nothing: a run may end without a cell to show.
func (o *verifyOptions) checkReports() error {
	taken := map[string]string{}
	for _, r := range append([]reportFile{{flag: "history", path: o.history}}, o.reports...) {
		if r.path == "" {
			continue
		}
		if other := taken[r.place()]; other != "" {
			return fmt.Errorf("--%s and --%s are both %s: one overwrites the other; give each a path", other, r.flag, r.path)
		}
		taken[r.place()] = r.flag
		if r.write == nil || r.path == "-" {
			continue
		}
		if err := r.check(); err != nil {
			return fmt.Errorf("--%s: %w", r.flag, err)
		}
	}
	return nil
}

// place is the file itself, whatever link or dots lead to it.
func (r reportFile) place() string {
	if r.path == "-" {
		return r.path
	}
	if real, err := filepath.EvalSymlinks(r.path); err == nil {
		return absolute(real)
	}
	return absolute(r.path)
}

func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// check tells whether the report can be written.
func (r reportFile) check() error {
	info, err := os.Stat(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := r.beside(nil)
		if err != nil {
			return &fs.PathError{Op: "create", Path: r.path, Err: errors.Unwrap(err)}
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	case err != nil:
		return err
	case info.Mode()&fs.ModeNamedPipe != 0: // its reader would take this for the whole
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY, 0) // not truncated
	if err != nil {
		return err
	}
	return f.Close()
}

// beside makes a file in the folder of the report, with the mode of the one that
// is there, if any.
func (r reportFile) beside(old fs.FileInfo) (*os.File, error) {
	folder, name := filepath.Split(r.place())
	f, err := os.OpenFile(filepath.Join(folder, "."+name+"."+rand.Text()[:8]), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	return f, err
}

// save writes a new file and puts it in the place of the old one, so that there is
// a whole report at any moment. A device or a pipe is written to as it is, and so
// is a file in a folder where no other may be made.
func (r reportFile) save(report verify.Report) error {
	old, err := os.Stat(r.path)
	if err == nil && !old.Mode().IsRegular() {
		return r.overwrite(report)
	}
	f, err := r.beside(old)
	if err != nil {
		return r.overwrite(report)
	}
	defer os.Remove(f.Name()) // gone when all went well
	if err := errors.Join(r.write(report, f), f.Close()); err != nil {
		return err
	}
	if os.Rename(f.Name(), r.place()) != nil { // a file that is mounted there
		return r.overwrite(report)
	}
	return nil
}

func (r reportFile) overwrite(report verify.Report) error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(r.write(report, f), f.Close())
}

// print writes the reports that are asked for, and the table unless one of them
// goes to the terminal. One that cannot be written takes no other with it.
func (o *verifyOptions) print(c *cobra.Command, report verify.Report) (err error) {
	out, table := c.OutOrStdout(), true
	for _, r := range o.reports {
		var failed error
		switch r.path {
		case "":
			continue
		case "-":
			table, failed = false, r.write(report, out)
		default:
			failed = r.save(report)
		}
		if failed != nil {
			err = cmp.Or(err, fmt.Errorf("--%s: %w", r.flag, failed))
		}
	}
	if !table {
		return err
	}
	return errors.Join(err, report.Table(out, isTerminal(out) && os.Getenv("NO_COLOR") == ""))
}
