package rlock

// A Role is the purpose of a script.
type Role string

// The roles.
const (
	RoleAcquire  Role = "acquire"  // takes the lock, or fails to
	RoleRenew    Role = "renew"    // extends the holder's lease
	RoleRelease  Role = "release"  // frees the lock, or undoes one reentry
	RoleHandover Role = "handover" // gives the lock to another holder, which the script's arguments name
	RoleChange   Role = "change"   // changes something else
)

// A Script describes a Lua script that this package sends, for a program that watches commands,
// such as a proxy or a test. Such a program need not read the script's text.
type Script struct {
	SHA  string // the script's name in Redis, in hexadecimal
	Name string // the effect in a few words; the same in all versions
	Role Role
	Lock int // which of KEYS is the lock, counted from 1; 0: none

	// Refused is the first value of the answer if the script changed nothing: another holder has the lock, or
	// there is no lock to give back. "" means that the answer does not show it.
	Refused string
	// Listeners is the position, counted from 1, of the number of notified listeners in the answer; 0
	// means that the answer does not contain it.
	Listeners int
	// Channel returns the channel on which waiters for a lock listen. It is nil if the script's
	// lock has no such channel.
	Channel func(lock string) string
}

// Scripts describes all scripts that this package sends.
func Scripts() []Script {
	channel := func(lock string) string { return namesOf(lock).channel }
	return []Script{
		{SHA: acquire.sha, Name: "take or re-enter", Role: RoleAcquire, Lock: 1, Refused: "0", Channel: channel},
		{SHA: renew.sha, Name: "renew if mine", Role: RoleRenew, Lock: 1, Refused: "0", Channel: channel},
		{SHA: release.sha, Name: "release one hold", Role: RoleRelease, Lock: 1, Refused: "-1", Listeners: 2, Channel: channel},
		{SHA: handover.sha, Name: "hand over in the process", Role: RoleHandover, Lock: 1, Refused: "0", Channel: channel},
		{SHA: forceUnlock.sha, Name: "free for any holder", Role: RoleRelease, Lock: 1, Refused: "0", Channel: channel},
		{SHA: raiseToken.sha, Name: "raise the token", Role: RoleChange},
		{SHA: fairAcquire.sha, Name: "take or queue", Role: RoleAcquire, Lock: 1},
		{SHA: fairRelease.sha, Name: "release one fair hold", Role: RoleRelease, Lock: 1, Refused: "-1"},
		{SHA: fairLeave.sha, Name: "leave the queue", Role: RoleChange},
		{SHA: fairForceUnlock.sha, Name: "free the fair lock for any holder", Role: RoleRelease, Lock: 1, Refused: "0"},
	}
}
