package level

import (
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/teach/play"
)

func checkThenDelete() Level {
	return Level{
		Name:  "check-then-delete",
		Title: "Checked, and still not yours",
		Task: "The lock has a token now, and the holder compares it before its DEL. Have a buyer delete the lock of the other all the " +
			"same.",
		Config:  play.Config{Strategy: "token-get-del", Events: []explore.Event{explore.Expire}},
		Goal:    verdict.Unlocked,
		Minutes: 6,
		Thought: "GET, compare, DEL: how long is the answer of the GET true?",
		Deed:    "The lease has to run out between the GET and the DEL, and the other has to take the lock there, too.",
		Learned: "A check and the deed that rests on it are two steps, and whatever fits between them happens some day. A Lua script " +
			"makes them one, since Redis runs a script with nothing in between.",
		Source: "Redis documentation, \"Distributed Locks with Redis\", section \"Correct Implementation with a Single Instance\"",
	}
}
