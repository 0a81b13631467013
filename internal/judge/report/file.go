package report

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A File is a requested report file.
type File struct {
	Flag   string // the flag's name without dashes
	Path   string // "-" is standard output
	Format Format
}

// Check checks, before the long run, that the files can be written and that no two are the same file. It
// changes no file, since a run may end without a result. `others` contains the paths of other output flags, by
// the flag's name.
func Check(files []File, others map[string]string) error {
	flagByPath := map[string]string{}
	for flag, path := range others {
		if path != "" {
			flagByPath[resolvePath(path)] = flag
		}
	}
	for _, f := range files {
		switch other := flagByPath[resolvePath(f.Path)]; other {
		case "":
		case f.Flag:
			return fmt.Errorf("--%s names %s twice", f.Flag, f.Path)
		default:
			return fmt.Errorf("--%s and --%s must have different paths (got %s for both)", other, f.Flag, f.Path)
		}
		flagByPath[resolvePath(f.Path)] = f.Flag
		if f.Path == "-" {
			continue
		}
		if err := check(f.Path); err != nil {
			return fmt.Errorf("--%s: %w; give a file in a folder that exists and that you may write to", f.Flag, err)
		}
	}
	return nil
}

// Save writes the document to every file. An error in one file does not affect the others. Save returns the
// first error.
func Save(files []File, d Document, stdout io.Writer) (err error) {
	for _, f := range files {
		if failed := f.save(d, stdout); failed != nil {
			err = cmp.Or(err, fmt.Errorf("--%s: %w", f.Flag, failed))
		}
	}
	return err
}

func resolvePath(path string) string {
	if path == "-" {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

func check(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		folder, name := filepath.Split(resolvePath(path))
		f, err := os.OpenFile(filepath.Join(folder, "."+name+"."+rand.Text()[:8]), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return &fs.PathError{Op: "create", Path: path, Err: errors.Unwrap(err)}
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	case err != nil:
		return err
	case info.Mode()&fs.ModeNamedPipe != 0: // opening and closing the pipe would give its reader an empty report
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // does not truncate the file
	if err != nil {
		return err
	}
	return f.Close()
}

// SaveSoFar writes an incomplete document to every file that can be replaced atomically. It skips
// pipes and devices, whose readers would take it for the final document.
func SaveSoFar(files []File, d Document) error {
	var errs []error
	for _, f := range files {
		if f.Path == "-" || special(f.Path) {
			continue
		}
		text, err := f.render(d)
		if err == nil {
			err = replace(resolvePath(f.Path), text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (f File) save(d Document, stdout io.Writer) error {
	text, err := f.render(d)
	if err != nil {
		return err
	}
	if f.Path == "-" {
		_, err := stdout.Write(text)
		return err
	}
	return Replace(f.Path, text)
}

// Replace replaces a file atomically and keeps its mode, so no reader sees an incomplete file. It writes
// directly to a device, a pipe or a mounted file, and to a file whose folder does not allow new files.
func Replace(path string, text []byte) error {
	if !special(path) {
		if err := replace(resolvePath(path), text); !errors.Is(err, errNoReplacing) {
			return err
		}
	}
	return os.WriteFile(path, text, 0o666)
}

// render returns the document in the file's format, with links relative to its folder.
func (f File) render(d Document) ([]byte, error) {
	if d.folder = "."; f.Path != "-" {
		d.folder = filepath.Dir(resolvePath(f.Path))
	}
	var text bytes.Buffer
	err := f.Format.Write(&text, d)
	return text.Bytes(), err
}

// special reports whether a path exists and is not a regular file.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// errNoReplacing means that the file cannot be replaced by a rename. A direct write may still be possible.
var errNoReplacing = errors.New("it cannot be replaced")
