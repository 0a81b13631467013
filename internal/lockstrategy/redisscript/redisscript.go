// Package redisscript has the words in which the owner of a Lua script says what
// it does, for tools that watch commands: the explorer takes nothing from a
// script's text.
//
// A strategy describes the scripts that it sends in its Entry, those of the
// libraries that it uses included.
package redisscript

import (
	"crypto/sha1" // #nosec G505 -- the name that Redis gives a script, not a secret
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// A Role is what a script is for.
type Role string

// The roles.
const (
	Acquire  Role = "acquire"  // takes the lock, or fails to
	Renew    Role = "renew"    // gives the holder's lease more time; whose lock it is stays as it was
	Release  Role = "release"  // frees the lock, or what its holder has of it
	Handover Role = "handover" // gives the lock to another holder; to whom, its caller knows
	Inspect  Role = "inspect"  // changes nothing
	Change   Role = "change"   // changes something else: a stock, a stream
)

// A Description is what one script does.
type Description struct {
	SHA  string // the name that Redis gives it, see SHA
	Name string // what it does, for people: a few words, the same for ever, since witnesses show it
	Role Role

	// Lock says which of KEYS is the lock, counted from 1; 0: the first one.
	Lock int
	// Refused are the answers by which the script says that it has changed nothing,
	// since somebody else has the lock or there is nothing to give back. Of an
	// answer of several values the first one counts.
	Refused []string
	// Listeners says which value of the answer is the number of listeners that
	// were notified, counted from 1; 0: it notifies nobody.
	Listeners int
	// Channel is where waiters for a lock listen; nil: nobody does.
	Channel func(lock string) string
}

// Parse describes a script by its header:
//
//	-- delete if mine        the Name
//	-- Role: release
//	-- Lock: KEYS[1]         left out if the script has no lock
//	-- Refused: 0            left out if the answer does not tell
func Parse(source string) Description {
	d := Description{SHA: SHA(source)}
	for line := range strings.Lines(source) {
		text, header := strings.CutPrefix(line, "-- ")
		switch text = strings.TrimSpace(text); {
		case d.Name == "":
			d.Name = text
		case header && strings.HasPrefix(text, "Role: "):
			d.Role = Role(strings.TrimPrefix(text, "Role: "))
		case header && strings.HasPrefix(text, "Lock: "):
			_, _ = fmt.Sscanf(text, "Lock: KEYS[%d]", &d.Lock)
		case header && strings.HasPrefix(text, "Refused: "):
			d.Refused = strings.Fields(strings.TrimPrefix(text, "Refused: "))
		}
	}
	return d
}

// SHA is the name that Redis gives a script.
func SHA(source string) string {
	sum := sha1.Sum([]byte(source)) // #nosec G401 -- as above
	return hex.EncodeToString(sum[:])
}

// LockOf is the lock among the script's keys; "" where it has none.
func (d Description) LockOf(keys []string) string {
	if n := max(d.Lock, 1); n <= len(keys) {
		return keys[n-1]
	}
	return ""
}

// Refuses reports whether the answer says that nothing was changed.
func (d Description) Refuses(answer []string) bool {
	return len(answer) > 0 && slices.Contains(d.Refused, answer[0])
}
