package statement_test

import (
	"slices"
	"testing"

	"github.com/oversell/oversell/internal/explore/wire/statement"
)

func TestWords(t *testing.T) {
	for sql, want := range map[string][]string{
		"select \"a b\" /* c */, 'd' from e;": {"SELECT", `"a b"`, ",", "'d'", "FROM", "E"},
		"SELECT 1; SELECT 2":                  nil,
		"":                                    nil,
		`SELECT 'a\', \'b'`:                   nil, // one string, or another: by standard_conforming_strings
		`SET x = 'a\b'`:                       {"SET", "X", "=", `'a\b'`},
		"SELECT 'a":                           nil,
		"SELECT $$;$$":                        {"SELECT", "$$;$$"},
	} {
		if got := statement.Words(sql, postgres); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", sql, got, want)
		}
	}
}
