package instance

import (
	"fmt"
	"strings"
	"testing"
)

// TestTail: the last five non-empty lines, joined in one line.
func TestTail(t *testing.T) {
	printed := &tail{}
	if got := printed.last(); got != "" {
		t.Errorf("nothing was printed, and it says %q", got)
	}
	for n := range 9 {
		fmt.Fprintf(printed, "line\t%d\r\n\n", n)
	}
	if got, want := printed.last(), "; it printed: line 4 | line 5 | line 6 | line 7 | line 8"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestException: the line with the exception is shown, however long its stack is, and whatever lines follow.
func TestException(t *testing.T) {
	frames := func(how string) string { return strings.Repeat(how+"\n", 200) }
	for name, c := range map[string]struct{ printed, want string }{
		"Python": {
			"started\nTraceback (most recent call last):\n" + frames("  File \"x.py\", line 1, in f\n    f()") + "  File \"shop.py\", line 7, in buy\n    raise E\nshop.SoldOut: none left\n" + frames("GET /buy 500"),
			"File \"x.py\", line 1, in f | f() | File \"shop.py\", line 7, in buy | raise E | shop.SoldOut: none left",
		},
		"Node": {
			"listening\n/app/shop.js:7\n    throw e\n    ^\n\nTypeError: no row\n    at buy (/app/shop.js:7:3)\n" + frames("    at next (/app/x.js:1:1)") + "\nNode.js v20\n",
			"TypeError: no row | at buy (/app/shop.js:7:3) | at next (/app/x.js:1:1) | at next (/app/x.js:1:1) | at next (/app/x.js:1:1)",
		},
		"Java": {
			"java.lang.Error: outer\n" + frames("\tat a.B.c(B.java:1)") + "Caused by: java.sql.SQLException: no table\n\tat a.Shop.buy(Shop.java:7)\n\t... 12 more\n",
			"Caused by: java.sql.SQLException: no table | at a.Shop.buy(Shop.java:7) | ... 12 more",
		},
		"PHP": {
			"PHP Fatal error:  Uncaught Exception: none left in /app/shop.php:7\nStack trace:\n#0 {main}\n  thrown in /app/shop.php on line 7\n",
			"PHP Fatal error: Uncaught Exception: none left in /app/shop.php:7 | Stack trace: | #0 {main} | thrown in /app/shop.php on line 7",
		},
		"Ruby": {
			"shop.rb:7:in 'buy': none left (SoldOut)\n" + frames("\tfrom x.rb:1:in 'f'"),
			"shop.rb:7:in 'buy': none left (SoldOut)" + strings.Repeat(" | from x.rb:1:in 'f'", 4),
		},
	} {
		printed := &tail{}
		fmt.Fprint(printed, c.printed)
		if got := printed.last(); got != "; it printed: "+c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
