package localserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
)

// An account is the user that runs a server. nil is the user of this process.
type account struct {
	name     string
	uid, gid int
}

// notRoot returns the account for a program that refuses to run as root. It returns nil if this process does
// not run as root, otherwise the first named account that exists on this machine.
func notRoot(names ...string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is a valid account
	}
	var errs []error
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		a := &account{name: name}
		if a.uid, err = strconv.Atoi(u.Uid); err == nil {
			a.gid, err = strconv.Atoi(u.Gid)
		}
		return a, err
	}
	return nil, fmt.Errorf("it refuses to run as root, and this machine has no other account for it: %w", errors.Join(errs...))
}

func (a *account) write(file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil || a == nil {
		return err
	}
	return os.Chown(file, a.uid, a.gid)
}

// own makes the account the owner of a folder, and allows other users to pass through the group's folder to it.
func (a *account) own(g *Group, dir string) error {
	if a == nil {
		return nil
	}
	if err := errors.Join(os.Chmod(g.dir, 0o711), os.Chown(dir, a.uid, a.gid)); err != nil {
		return err
	}
	for above := filepath.Dir(g.dir); ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("the user %s, which runs it, cannot enter %s: set TMPDIR to a folder that all users may enter", a.name, above)
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

// run makes cmd run as the account, in a folder that it can enter.
func (a *account) run(cmd *exec.Cmd, dir string) {
	if a != nil {
		cmd.Dir = dir
		runAs(cmd, a.uid, a.gid)
	}
}
