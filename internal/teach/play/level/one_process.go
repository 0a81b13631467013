package level

import "github.com/oversell/oversell/internal/teach/play"

func oneProcess() Level {
	return Level{
		Name:    "one-process",
		Title:   "The same mutex, one process",
		Task:    "The same mutex, and both buyers are in one process. Sell the unit twice, or claim that nobody can.",
		Config:  play.Config{Strategy: "mutex", Shared: true},
		Nobody:  true,
		Open:    true,
		Minutes: 3,
		Thought: "What has changed is who shares the lock. Is it held until after the COMMIT?",
		Deed:    "Take one buyer as far as its read. Then see whether the other has a command to send at all.",
		Learned: "Within one process the mutex holds, and it costs nothing over the network. The claim ends where the process does: a " +
			"second one, or a deploy in which two versions overlap, and it is the level before.",
		Source: "The Go Memory Model, section \"Locks\", https://go.dev/ref/mem#locks",
	}
}
