package explore_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
)

// FuzzParseSchedule: a string is refused in one line, or it is parsed to a schedule that is written
// back equivalently.
func FuzzParseSchedule(f *testing.F) {
	for _, line := range []string{
		"v1:none:b2:s1:1*2.2*5.1*3", "v1:pooled:b2:s1:shared:1.1~2*2.1*3",
		"v1:early-unlock:b2:s1:shared:1*5.2*3.1.2*3",
		"v1:redlock:b2:s1:1a.2a.2b.forget-b.2c.2*4.1b.1c.1*3.2.2a.2b.2c.1*3.1a.1b.1c",
		"v1:watchdog:b2:s1:1.renew1.1r.2.expire.crash2.forget",
		"v1:none:b2:s1:1*2.2+1.1*2.2*4",
		"v1:none:b2:s1:1*999.1*999",
		"v1:none:b2:s1:", "v1:none:b2:s1", "v1:::::", "v0:none:b2:s1:1", "v2:none:b2:s1:1", "v1:none:b:s:1", "v1:none:b+2:s01:1",
		"v1:none:b2:s1:shared", "v1:none:b2:s4:u2:1*5.2*2", "v1:none:b2:s4:u1,2:1*5.2*2", "v1:none:b3:s4:u3,3:1*5.2*2", "v1:none:b2:s4:shared:key:1*5.2*2", "v1:none:b2:s4:key:1*5.2*2", "v1:none:b2:s1:1.disconnect1.1r.2", "v1:none:b2:s4:u2:shared:1", "v1:none:b2:s4:u1:1", "v1:none:b2:s4:shared:u2:1", "v1:none:b2:s1:other:1", "v1:none:b2:s99999999999999999999:1", "v1:none:b2:s1:1*0", "v1:none:b2:s1:1..2",
		"v1:none:b2:s1:0", "v1:none:b2:s1:crash", "v1:none:b2:s1:1\n2", " v1:none:b2:s1:1 ", "", ":", "v", "\x00", "v\n::::",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := explore.ParseSchedule(line)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		if len(s.Tokens) == 0 {
			t.Errorf("%q has no step", line)
		}
		if len(s.Tokens) > 999 {
			return // longer than any run, so Replay refuses it
		}
		again, err := explore.ParseSchedule(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%q is written as %q, which is %v, %v", line, s, again, err)
		}
	})
}
