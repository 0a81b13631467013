// Package locktest holds locks that live on a server to what they claim, and
// measures them.
//
// Give it a [Subject], that is a way to connect one more client and what the
// lock claims, and call [Run] in a test:
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
// Every [Check] says in one sentence what must hold. What the subject does not
// claim is tried all the same where that is possible and reported as not
// claimed with what was seen; what cannot be tried for want of a hook is
// reported as unchecked. Neither passes in silence.
//
//	client 1 ── contender, contender, ... ─┐
//	client 2 ── contender, contender, ... ─┼── lock server
//	client 3 ── contender, contender, ... ─┘        │
//	     └── the checks ── Forget, Remaining, ... ──┘
//
// [Measure] counts hand-overs, waits and commands with contenders in child
// processes.
//
// It proves nothing: a race that shows once in a million grants may get by.
// Every check is itself checked by a lock that is broken in just that way
// (TestBrokenLocksAreCaught).
package locktest
