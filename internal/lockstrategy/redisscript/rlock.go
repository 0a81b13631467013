package redisscript

import "github.com/oversell/oversell/rlock"

// Rlock describes the scripts of package rlock.
func Rlock() (all []Description) {
	for _, s := range rlock.Scripts() {
		d := Description{SHA: s.SHA, Name: s.Name, Role: Role(s.Role), Lock: s.Lock, Listeners: s.Listeners, Channel: s.Channel}
		if s.Refused != "" {
			d.Refused = []string{s.Refused}
		}
		all = append(all, d)
	}
	return all
}
