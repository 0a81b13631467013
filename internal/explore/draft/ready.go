package draft

import "regexp"

var healthPath = regexp.MustCompile("[\"'`](?:GET )?(/(?:api/)?(?:healthz?|health[-_/]?checks?|readyz?|livez|ping))/?[\"'`]")

func readReady(r *repository, d *Draft) {
	if file, m := r.search(r.sourceFiles(), healthPath); m != nil {
		d.Ready.guess(m[1], "%s has this path", file)
	}
}
