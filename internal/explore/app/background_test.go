package app

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// TestBackground: an entry of `ignore` is a table or a pattern. The error for any other entry says what
// to write.
func TestBackground(t *testing.T) {
	a, err := load(t, sound+"ignore: [ Public.jobs, '^EVALSHA ' ]\nquiet: 2s\n")
	require.NoError(t, err)
	for command, want := range map[string]bool{
		"mysql SELECT id FROM `jobs` j WHERE id > 5 FOR UPDATE": true,
		"mysql INSERT INTO jobs SELECT id FROM orders":          false,
		"mysql SELECT 1":          false,
		"mysql COMMIT":            false,
		"redis EVALSHA 0a1 0":     true,
		"redis GET jobs":          false,
		"redis SET x 'FROM jobs'": false,
	} {
		protocol, text, _ := strings.Cut(command, " ")
		if got := a.Ignore.Names(protocol, text); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
	for line, says := range map[string]string{
		"ignore: [ 'a(' ]":      "ignore: error parsing regexp",
		"ignore: [ '.*' ]":      `ignore: ".*" matches every command; write a table`,
		"ignore: [ x, Orders ]": "ignore: the rule \"SELECT 1 FROM orders HAVING count(*) <> :sold\" of never reads orders",
		"quiet: 2":              `quiet: "2" is not a duration; expected, for example, 2s`,
		"quiet: -1s":            "is not a duration",
	} {
		if _, err := load(t, sound+line+"\n"); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", line, err)
		}
	}
}
