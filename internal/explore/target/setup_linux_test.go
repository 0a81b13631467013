package target

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target/naming"
)

// TestSetUp: a command that sets up a new connection is no step, unless its buyer may wait for it, or the
// connection was used before.
func TestSetUp(t *testing.T) {
	f, err := newFloor(app.Ignore{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.close()
	x := &Runner{gateTable: f, app: &app.App{}}
	x.guard = ignoreGuard{x: x}
	r := settling{rest{&run{x: x, names: naming.New(&x.varying, false), buyers: []*buyer{{id: 1, alive: true}}}}}
	address := echo(t, f)
	say := func(conn net.Conn, command string) (held int) {
		fmt.Fprintln(conn, command)
		for deadline := time.Now().Add(20 * time.Second); ; f.bell.wait(look) {
			f.mu.Lock()
			if len(f.fresh) > 0 && !f.fresh[0].behind {
				_, err := r.attribute()
				r.setUp()
				(repeating{r}).mark(false)
				held = len(f.held)
				f.mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}
				return held
			}
			f.mu.Unlock()
			if time.Now().After(deadline) {
				t.Fatalf("%s has not arrived", command)
			}
		}
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first, second := dial(), dial()
	if held := say(first, "SET autocommit=0"); held != 1 {
		t.Errorf("%d commands are held; the buyer may wait for the first", held)
	}
	if held := say(second, "SET autocommit=1"); held != 1 {
		t.Errorf("%d commands are held; the buyer does not wait for the second", held)
	}
	if answer, err := bufio.NewReader(second).ReadString('\n'); err != nil || answer != "SET autocommit=1\n" {
		t.Fatalf("%q, %v", answer, err)
	}
	if held := say(second, "UPDATE items SET stock = 0"); held != 2 {
		t.Errorf("%d commands are held; this one changes rows", held)
	}
	f.mu.Lock()
	o := f.held[1]
	f.mu.Unlock()
	f.letGo(o)
	o.Deliver()
	if _, err := bufio.NewReader(second).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if held := say(second, "SET autocommit=1"); held != 2 {
		t.Errorf("%d commands are held; this one may end a transaction", held)
	}
}
