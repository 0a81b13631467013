// Package tier decides which make command runs a test. Each command runs its own tests and those of the
// commands before it:
//
//	make quick   no server, no race detector; before each commit
//	make test    the strongest evidence for each part, on real servers
//	make soak    long searches, full matrices, and tests that others cover in less time
//
// A test without a call of this package runs in all three. The call is one line with the reason,
// and `go run -C tools ./tiers` prints these lines as a table.
package tier

import (
	"os"
	"testing"
)

// Variable is an environment variable. If it is not empty, `go test` runs the tests of `make soak`.
const Variable = "OVERSELL_SOAK"

// Test skips a test under `make quick`. The parameter `why` names the need or the cost of the test.
func Test(t testing.TB, why string) {
	t.Helper()
	if Quick() {
		t.Skip(why + ": make test runs it")
	}
}

// Soak skips a test except under `make soak`. The parameter `why` names the cost of the test, or the test of
// `make test` that covers the same. If `why` is "", Soak skips nothing.
func Soak(t testing.TB, why string) {
	t.Helper()
	if why != "" && !Soaking() {
		t.Skip(why + ": make soak runs it")
	}
}

// Quick reports whether the test runs under `make quick`, which sets -short.
func Quick() bool { return testing.Short() }

// Soaking reports whether the test runs under `make soak`.
func Soaking() bool { return os.Getenv(Variable) != "" }
