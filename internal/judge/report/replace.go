//go:build !windows

package report

import (
	"cmp"
	"errors"
	"syscall"

	"github.com/google/renameio/v2"
)

// replace writes a temporary file and renames it. After an error the old file is unchanged.
func replace(path string, text []byte) (err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT): // no space is left, and a direct write would first empty the old file
		return err
	case err != nil:
		return errNoReplacing
	}
	defer func() { err = cmp.Or(err, f.Cleanup()) }()
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil { // a full disk may be reported only here
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return errNoReplacing
	}
	return nil
}
