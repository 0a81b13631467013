// Package redisscript lets the owner of a Lua script describe its effect. Tools that watch Redis commands,
// such as the explorer, use the description and do not interpret the script's text.
//
// A lockstrategy.Entry describes the scripts that its strategy and its libraries send.
package redisscript

import (
	"crypto/sha1" // #nosec G505 -- the name that Redis gives a script, not a secret
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// A Role is the purpose of a script.
type Role string

const (
	Acquire  Role = "acquire"  // takes the lock, or fails to
	Renew    Role = "renew"    // extends the holder's lease; the holder stays the same
	Release  Role = "release"  // frees the lock, or one level of a reentrant lock
	Handover Role = "handover" // gives the lock to another holder, which the caller knows
	Inspect  Role = "inspect"  // changes nothing
	Change   Role = "change"   // changes something else: a stock, a stream
)

// A Description says what one script does.
type Description struct {
	SHA  string // the script's name in Redis, its SHA-1
	Name string // the effect in a few words; stored witnesses (violations) contain it, so it must never change
	Role Role

	// Lock is the index in KEYS, from 1, of the lock's key; 0 means that the script has no lock.
	Lock int
	// Refused lists the answers that mean that the script changed nothing: another holder has the lock, or
	// there is nothing to give back. Only the first value of an answer with several values counts.
	Refused []string
	// Listeners is the index in the answer, from 1, of the number of notified listeners; 0 means that the
	// script notifies none.
	Listeners int
	// Channel returns the pub/sub channel on which waiters for a lock listen; nil means that there is none.
	Channel func(lock string) string
}

// Parse describes a script by its header:
//
//	-- delete if mine        the Name
//	-- Role: release
//	-- Lock: KEYS[1]         left out if the script has no lock
//	-- Refused: 0            left out if no answer means that nothing changed
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

// SHA returns the name of a script in Redis.
func SHA(source string) string {
	sum := sha1.Sum([]byte(source)) // #nosec G401 -- a name, not a secret
	return hex.EncodeToString(sum[:])
}

// LockOf returns the lock among the script's keys, or "" if there is none.
func (d Description) LockOf(keys []string) string {
	if d.Lock > 0 && d.Lock <= len(keys) {
		return keys[d.Lock-1]
	}
	return ""
}

// Refuses reports whether the answer means that nothing was changed.
func (d Description) Refuses(answer []string) bool {
	return len(answer) > 0 && slices.Contains(d.Refused, answer[0])
}
