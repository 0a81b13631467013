package localserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A folder contains the files of one server. They belong to the account that runs the server.
type folder struct {
	path string
	user *account // user that runs the server; nil: the user of this process
}

func (g *Group) newFolder(name string, user *account) (folder, error) {
	dir, err := g.Dir(name)
	if err != nil {
		return folder{}, err
	}
	return folder{dir, user}, user.own(g, dir)
}

func (f folder) file(name string) string { return filepath.Join(f.path, name) }
func (f folder) data(name string) string { return filepath.Join(f.path, "data", name) }

func (f folder) mkdir(name string) error {
	if err := os.Mkdir(f.file(name), 0o700); err != nil || f.user == nil {
		return err
	}
	return os.Chown(f.file(name), f.user.uid, f.user.gid)
}

func (f folder) write(name, text string) error { return f.user.write(f.file(name), text) }

func (f folder) copyData(from folder) error {
	if out, err := exec.Command("cp", "-a", from.data(""), f.data("")).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the files of %s: %w: %s", from.path, err, out)
	}
	return nil
}

// run runs a program as the user until the program ends, and returns its output. An error contains the last
// lines of the output. The program is a child of the group, so a SIGKILL of this process ends it too.
// Otherwise an installer script would create the folder again after the janitor process has removed it.
func (f folder) run(g *Group, command ...string) (said string, err error) {
	log, err := os.Create(f.file("run.log"))
	if err != nil {
		return "", err
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	f.user.run(cmd, f.path)
	child, err := g.Start(cmd)
	if err != nil {
		return "", err
	}
	<-child.Done()
	text, err := os.ReadFile(log.Name())
	if child.err != nil {
		err = fmt.Errorf("%s failed (%w); its last words: %s", child.name, child.err, lastWords(log.Name()))
	}
	return string(text), err
}
