package target

import (
	"fmt"
	"strings"
	"testing"
)

// TestReply: an answer is shown in one line. An answer about a failure may be longer than others.
func TestReply(t *testing.T) {
	long := strings.Repeat("é", 400)
	for _, c := range []struct {
		reply reply
		want  string
	}{
		{reply{200, "bought\n"}, "200 bought"},
		{reply{303, ""}, "303"},
		{reply{409, long}, "409 " + strings.Repeat("é", 60) + "…"},
		{reply{500, "no\n\tdatabase"}, "500 no database"},
		{reply{503, long}, "503 " + strings.Repeat("é", 300) + "…"},
		{reply{500, "a\xffb"}, "500 a\uFFFDb"},
	} {
		if got := c.reply.text(); got != c.want {
			t.Errorf("%d: %q, want %q", c.reply.status, got, c.want)
		}
	}
}

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

// TestWhoWaits: "one waits" and "several wait".
func TestWhoWaits(t *testing.T) {
	for _, c := range []struct {
		ids  []int
		want string
	}{
		{[]int{2}, "buyer 2 waits"},
		{[]int{1, 2}, "buyers 1 and 2 wait"},
		{[]int{1, 2, 3}, "buyers 1, 2 and 3 wait"},
	} {
		if got := whoWaits(c.ids); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
