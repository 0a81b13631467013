package draft

import "regexp"

// healthPath matches a path that says whether the program is ready.
var healthPath = regexp.MustCompile("[\"'`](?:GET )?(/(?:api/)?(?:healthz?|health[-_/]?checks?|readyz?|livez|ping))/?[\"'`]")

// readReady finds the request that says whether the program is ready.
func readReady(r *repository, d *Draft) {
	if file, m := r.search(r.sourceFiles(), healthPath); m != nil {
		d.Ready.guess(m[1], "%s has this path", file)
	}
}
