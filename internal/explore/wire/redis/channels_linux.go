package redis

import "strings"

// channels are those that a connection has subscribed to, by the word that begins a
// confirmation: "subscribe", "psubscribe", "ssubscribe".
type channels map[string]map[string]struct{}

func newChannels() channels {
	return channels{"subscribe": {}, "psubscribe": {}, "ssubscribe": {}}
}

// none: no message can come.
func (c channels) none() bool {
	for _, names := range c {
		if len(names) > 0 {
			return false
		}
	}
	return true
}

// confirmations is how many UNSUBSCRIBE without arguments gets: one for each channel, and
// one where there is none.
func (c channels) confirmations(listens string) int {
	return max(1, len(c[entering(listens)]))
}

// confirmed notes what the confirmation v, which begins with word, says.
func (c channels) confirmed(word string, v *value) {
	if len(v.items) < 2 || v.items[1].null {
		return
	}
	names, name := c[entering(word)], string(v.items[1].text)
	if word == entering(word) {
		names[name] = struct{}{}
	} else {
		delete(names, name)
	}
}

// entering is "psubscribe" of "punsubscribe".
func entering(word string) string { return strings.Replace(word, "unsub", "sub", 1) }

// heading is the word by which a message or a confirmation is known, "" of other values.
func heading(v *value) string {
	if v.kind != '*' && v.kind != '>' || len(v.items) == 0 {
		return ""
	}
	switch word := string(v.items[0].text); word {
	case "message", "pmessage", "smessage",
		"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return word
	}
	return ""
}
