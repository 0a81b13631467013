package schedule

// An Event is an incident, such as a crash, that the explorer injects as a step. Each event happens at most once in
// a schedule.
type Event string

// The events. The packages internal/explore/own and internal/explore/target implement each of their events in a
// file event_NAME.go.
const (
	Expire  Event = "expire"  // every lease expires, and its holder does not notice
	Crash   Event = "crash"   // a buyer's process dies, and its connections end
	Forget  Event = "forget"  // one Redis server loses its keys
	Renew   Event = "renew"   // a buyer's watchdog, a background task, renews its lease
	Timeout Event = "timeout" // a buyer's wait in a server times out

	Disconnect Event = "disconnect" // a buyer hangs up; its process continues and cleans up
	Raise      Event = "raise"      // a buyer's code raises an error or panics between two statements, and cleans up
	NoUnlock   Event = "no-unlock"  // a buyer's code forgets its unlock; its process continues
	Restock    Event = "restock"    // another process restocks the product
)

// A Kind describes an event.
type Kind struct {
	Event     Event
	tokens    string // a regular expression, without groups, for the event's tokens in a replay string
	NotShared string // why it cannot happen when all buyers share one process; "" if it can
	Without   string // a possible reason why the search could inject it at no step
	OwnOnly   bool   // only strategies of this project have it; programs under test do not
}

// Kinds returns all events in display order.
func Kinds() []Kind {
	return []Kind{
		{Event: Expire, tokens: "expire", Without: "no lock expires"},
		{Event: Crash, tokens: "crash[1-9]", NotShared: "the one process would take all buyers with it"},
		{Event: Forget, tokens: "forget(?:-[a-z])?", Without: "Redis held no key"},
		{Event: Renew, tokens: "renew[1-9]", Without: "no lock has a watchdog", OwnOnly: true},
		{Event: Timeout, tokens: "timeout[1-9]", Without: "no buyer waited in a server"},
		{Event: Disconnect, tokens: "disconnect[1-9]", OwnOnly: true},
		{Event: Raise, tokens: "raise[1-9](?:-panic)?", OwnOnly: true},
		{Event: NoUnlock, tokens: "no-unlock[1-9]", Without: "no lock of the strategy is released by a command of its own", OwnOnly: true},
		{Event: Restock, tokens: "restock", Without: "a transaction was open at each step", OwnOnly: true},
	}
}

// Events returns the names of the kinds for which `wanted` returns true, in display order.
func Events(wanted func(Kind) bool) (names []Event) {
	for _, k := range Kinds() {
		if wanted(k) {
			names = append(names, k.Event)
		}
	}
	return names
}
