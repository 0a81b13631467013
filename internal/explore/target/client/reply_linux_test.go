package client

import (
	"strings"
	"testing"
)

// TestReply: an answer is shown in one line. An answer about a failure may be longer than others.
func TestReply(t *testing.T) {
	long := strings.Repeat("é", 400)
	for _, c := range []struct {
		reply Reply
		want  string
	}{
		{Reply{Status: 200, Body: "bought\n"}, "200 bought"},
		{Reply{Status: 303, Body: ""}, "303"},
		{Reply{Status: 409, Body: long}, "409 " + strings.Repeat("é", 60) + "…"},
		{Reply{Status: 500, Body: "no\n\tdatabase"}, "500 no database"},
		{Reply{Status: 503, Body: long}, "503 " + strings.Repeat("é", 300) + "…"},
		{Reply{Status: 500, Body: "<!doctype html>\n<html><head><style>a{}</style>\n<title>OperationalError\n at /buy &amp; no table</title>"}, "500 OperationalError at /buy & no table"},
		{Reply{Status: 500, Body: "a\xffb"}, "500 a\uFFFDb"},
	} {
		if got := c.reply.Text(); got != c.want {
			t.Errorf("%d: %q, want %q", c.reply.Status, got, c.want)
		}
	}
}
