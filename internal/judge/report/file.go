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

// A File is a report that is asked for.
type File struct {
	Flag   string // that asks for it, without its dashes
	Path   string // "-" is standard output
	Format Format
}

// Check finds out, before the long work, whether the files can be written, and
// that no two are the same. It changes nothing: a run may end without a result.
// The others are flags whose files or folders are made elsewhere, by their paths.
func Check(files []File, others map[string]string) error {
	taken := map[string]string{}
	for flag, path := range others {
		if path != "" {
			taken[place(path)] = flag
		}
	}
	for _, f := range files {
		switch other := taken[place(f.Path)]; other {
		case "":
		case f.Flag:
			return fmt.Errorf("--%s names %s twice", f.Flag, f.Path)
		default:
			return fmt.Errorf("--%s and --%s are both %s: one overwrites the other; give each a path", other, f.Flag, f.Path)
		}
		taken[place(f.Path)] = f.Flag
		if f.Path == "-" {
			continue
		}
		if err := check(f.Path); err != nil {
			return fmt.Errorf("--%s: %w", f.Flag, err)
		}
	}
	return nil
}

// Save writes the document to every file. One that cannot be written takes no
// other with it; the error is of the first.
func Save(files []File, d Document, stdout io.Writer) (err error) {
	for _, f := range files {
		if failed := f.save(d, stdout); failed != nil {
			err = cmp.Or(err, fmt.Errorf("--%s: %w", f.Flag, failed))
		}
	}
	return err
}

// place is the file itself, whatever link or dots lead to it.
func place(path string) string {
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

// check tells whether a report can be written.
func check(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		folder, name := filepath.Split(place(path))
		f, err := os.OpenFile(filepath.Join(folder, "."+name+"."+rand.Text()[:8]), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return &fs.PathError{Op: "create", Path: path, Err: errors.Unwrap(err)}
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	case err != nil:
		return err
	case info.Mode()&fs.ModeNamedPipe != 0: // its reader would take this for the whole
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // not truncated
	if err != nil {
		return err
	}
	return f.Close()
}

// SaveSoFar writes a document that another will follow to every file that can be
// replaced whole: what reads a pipe or a device would take it for the last one.
func SaveSoFar(files []File, d Document) error {
	var errs []error
	for _, f := range files {
		if f.Path == "-" || special(f.Path) {
			continue
		}
		text, err := f.render(d)
		if err == nil {
			err = replace(place(f.Path), text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// save writes the document in the file's format.
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

// Replace puts a whole new file in the place of the old one, with its mode, so that
// there is a whole one at any moment. A device or a pipe is written to as it
// is, and so is a file in a folder where no other may be made, or one that is
// mounted.
func Replace(path string, text []byte) error {
	if !special(path) {
		if err := replace(place(path), text); !errors.Is(err, errNoReplacing) {
			return err
		}
	}
	return os.WriteFile(path, text, 0o666)
}

// render is the document in the file's format, with links from where it lies.
func (f File) render(d Document) ([]byte, error) {
	if d.folder = "."; f.Path != "-" {
		d.folder = filepath.Dir(place(f.Path))
	}
	var text bytes.Buffer
	err := f.Format.Write(&text, d)
	return text.Bytes(), err
}

// special tells whether a path is there and no regular file.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// errNoReplacing: no other file can take the place of this one, though it may
// well be written to.
var errNoReplacing = errors.New("it cannot be replaced")
