// Package locktest checks whether locks that live on a server do what they claim, and measures them.
//
// Make a [Subject], which can connect clients and states which properties the lock claims, and call [Run] in a
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
// Every [Check] states one property in a sentence. If the subject does not claim the property, the check
// still tries it if possible, and reports "not claimed" with its observation. If the subject lacks a function
// (hook) that the check needs, the check reports "unchecked". Neither result counts as passed.
//
//	client 1 ── contender, contender, ... ─┐
//	client 2 ── contender, contender, ... ─┼── lock server
//	client 3 ── contender, contender, ... ─┘        │
//	     └── the checks ── Forget, Remaining, ... ──┘
//
// [Measure] counts handovers, waits and commands with contenders in child processes.
//
// Passed checks are no proof: they may miss a race that occurs once in a million grants. But each check finds
// the flaw that it looks for: a test runs it on a lock with that flaw (TestBrokenLocksAreCaught).
package locktest
