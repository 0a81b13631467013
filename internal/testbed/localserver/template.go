package localserver

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// A template is the path of a folder with the files of a database that has never run. The folder is in the
// user's cache folder, and only this user can read it. A copy takes an eighth of the time that the database
// needs to create the files. If the files contain a password, all servers from this template use it. "" means
// that the user has no cache folder.
type template string

// secretFile contains the password in the files of a template, if they contain one.
const secretFile = "secret"

// templateOf returns the template for the files that a program creates with these arguments. Each version of
// the program has its own template.
func templateOf(name, program string, args ...string) template {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	info, err := os.Stat(program)
	if err != nil {
		return ""
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q %d %s %q", program, info.Size(), info.ModTime(), args))
	return template(filepath.Join(cache, "oversell", fmt.Sprintf("%s-%x", name, key[:8])))
}

// copyTo copies the files into a folder without data. It returns the password in the files, and reports
// whether there was a template. If there was none, the folder still has no data.
func (t template) copyTo(in folder) (secret string, ok bool) {
	if t == "" {
		return "", false
	}
	from := folder{path: string(t)}
	text, err := os.ReadFile(from.file(secretFile))
	if err != nil {
		return "", false
	}
	if err := in.copyData(from); err != nil { // the template is damaged, or another process has just removed it
		_ = os.RemoveAll(in.data(""))
		_ = os.RemoveAll(from.path)
		return "", false
	}
	return string(text), true
}

// keep makes the files of a folder the template, and removes those of older versions. If that fails, the next
// server creates its files again. The copy also reserves disk space for blocks of zeros, such as most of
// MariaDB's redo log. Otherwise MariaDB would end if the disk is full later.
func (t template) keep(in folder, secret string) {
	if t == "" {
		return
	}
	name := filepath.Base(string(t))
	older, _ := filepath.Glob(filepath.Join(filepath.Dir(string(t)), name[:len(name)-16]+"*")) // the hash in the name has 16 digits
	if err := os.MkdirAll(filepath.Dir(string(t)), 0o700); err != nil {
		return
	}
	path, err := os.MkdirTemp(filepath.Dir(string(t)), name+".") // the final name marks a complete template
	if err != nil {
		return
	}
	to := folder{path: path}
	if to.write(secretFile, secret) != nil || to.copyData(in) != nil || os.Rename(path, string(t)) != nil { // the rename fails if another process was faster
		_ = os.RemoveAll(path)
		return
	}
	for _, one := range older {
		_ = os.RemoveAll(one)
	}
}
