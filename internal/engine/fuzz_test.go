package engine

import (
	"maps"
	"strings"
	"testing"
)

// FuzzHosts: a list of hosts is rejected without showing its password, or it returns each host once.
func FuzzHosts(f *testing.F) {
	f.Add("redis+cluster://user:s3cret-s3cret@h1:1,h2,[::1]:3/name?a=b", "6379")
	f.Add("redis+sentinel://:s3cret-s3cret@h1,h1/mymaster/2", "26379")
	f.Add("x://:s3cret-s3cret/@h,", "1")
	f.Add("://,", "")
	f.Fuzz(func(t *testing.T, text, port string) {
		l, err := parseHostList(text, port)
		if err != nil {
			if _, behind, _ := strings.Cut(text, "://"); strings.HasPrefix(behind, ":s3cret-s3cret@") && strings.Contains(err.Error(), "s3cret-s3cret") {
				t.Errorf("the password is in %q", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, host := range l.hosts {
			if seen[host] || host == "" {
				t.Errorf("%q has %q twice, or empty", text, host)
			}
			seen[host] = true
		}
		if len(seen) == 0 {
			t.Errorf("%q has no host", text)
		}
	})
}

// FuzzDetours: String returns a text with the same meaning as the parsed text.
func FuzzDetours(f *testing.F) {
	f.Add("a:1=b:2,c:3=d:4")
	f.Add("[::1]:1=b:2")
	f.Add("a:1=b:2,a:1=c:3")
	f.Add("a:=b:2")
	f.Add(",")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDetours(text)
		if err != nil {
			return
		}
		again, err := ParseDetours(d.String())
		if err != nil || !maps.Equal(again, d) {
			t.Errorf("%q is written as %q, which is %v, %v", text, d, again, err)
		}
	})
}
