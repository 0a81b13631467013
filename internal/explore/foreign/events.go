package foreign

import "github.com/oversell/oversell/internal/explore/schedule"

// Names of the events, which are known where no program can be explored, too.
const (
	expireName  schedule.Event = "expire"
	crashName   schedule.Event = "crash"
	forgetName  schedule.Event = "forget"
	timeoutName schedule.Event = "timeout"
)

// EventNames are the names of all events of programs, in display order.
func EventNames() []schedule.Event {
	return []schedule.Event{expireName, crashName, forgetName, timeoutName}
}
