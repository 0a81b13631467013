package draft

import "regexp"

var (
	procfileWeb     = regexp.MustCompile(`(?m)^web:\s*(.+?)\s*$`)
	procfileRelease = regexp.MustCompile(`(?m)^release:\s*(.+?)\s*$`)
)

// readProcfile reads the commands for a hosting platform: web starts the program, and release migrates.
func readProcfile(r *repository, d *Draft) {
	text := r.text("Procfile")
	if m := procfileWeb.FindStringSubmatch(text); m != nil {
		d.Run.guess(m[1], "Procfile has web")
	}
	if m := procfileRelease.FindStringSubmatch(text); m != nil {
		d.Migrate.guess(m[1], "Procfile has release")
	}
}
