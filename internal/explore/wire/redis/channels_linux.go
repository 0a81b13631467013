package redis

import "strings"

// channels are the subscriptions of a connection, by the first word of their confirmation: "subscribe",
// "psubscribe", "ssubscribe".
type channels map[string]map[string]struct{}

func newChannels() channels {
	return channels{"subscribe": {}, "psubscribe": {}, "ssubscribe": {}}
}

func (c channels) none() bool {
	for _, names := range c {
		if len(names) > 0 {
			return false
		}
	}
	return true
}

// confirmations returns the number of answers to an UNSUBSCRIBE without arguments: one for each
// channel, or one if there is none.
func (c channels) confirmations(listens string) int {
	return max(1, len(c[entering(listens)]))
}

// confirmed records the confirmation v, which begins with `word`.
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

// entering returns "psubscribe" for "punsubscribe".
func entering(word string) string { return strings.Replace(word, "unsub", "sub", 1) }

// heading returns the first word of a message or a confirmation, and "" for other values.
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
