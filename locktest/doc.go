// Package locktest checks whether locks that live on a server do what they claim, and measures them.
//
// Make a [Subject], which can connect clients and states the lock's claims, and call [Run] in a
// test:
//
//	func TestMyLock(t *testing.T) {
//		locktest.Run(t, locktest.Subject{
//			Name:    "mylock",
//			Connect: func(ctx context.Context) (locktest.Client, error) { return dial(ctx, addr) },
//			TTL:     time.Second,
//			Renews:  true, RenewEvery: 300 * time.Millisecond,
//			Forget:  func(ctx context.Context, name string) error { return rdb.Del(ctx, name).Err() },
//		})
//	}
//
// For a lock that is one function, [Connect] makes the clients. README.md has a test of ten lines with
// the failure that it prints.
//
// Every [Check] states one property in a sentence. If the subject does not claim a property, the
// check still tries it where possible, and reports "not claimed" with the observation. If the
// subject lacks the hook that a check needs, the check reports "unchecked". Neither counts as passed.
//
//	client 1 ── contender, contender, ... ─┐
//	client 2 ── contender, contender, ... ─┼── lock server
//	client 3 ── contender, contender, ... ─┘        │
//	     └── the checks ── Forget, Remaining, ... ──┘
//
// [Measure] counts handovers, waits and commands with contenders in child processes.
//
// Passed checks prove nothing: they may miss a race that occurs once in a million grants. A test runs
// every check on a lock with the flaw that the check looks for (TestBrokenLocksAreCaught).
package locktest
