package target

import (
	"fmt"
	"os"
	"regexp"

	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/instance"
)

// A namesakes detects buyers of several instances that send the same host name and process id, probably as a token that
// should be unique.
type namesakes struct {
	instances *instance.Instances
	first     map[string]int // by process id: the first buyer that sent it
	same      string         // the host name and process id, for the user; "": none were the same
}

// hostName matches the name of this host, which is the same in all instances.
var hostName = func() *regexp.Regexp {
	name, _ := os.Hostname() // without a name, nothing is detected
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
}()

func (n *namesakes) sent(o *gates.Op) {
	if n.same != "" || n.instances.Shared() || o.Buyer == 0 || !hostName.MatchString(o.Text) {
		return
	}
	i := n.instances.Of(o.Buyer)
	if !i.Up() {
		return
	}
	for _, pid := range i.Program.PIDs() {
		if !regexp.MustCompile(`\b` + pid + `\b`).MatchString(o.Text) {
			continue
		}
		if other := n.first[pid]; other != 0 && other != o.Buyer {
			n.same = fmt.Sprintf("host name %s and process id %s", hostName.FindString(o.Text), pid)
		}
		n.first[pid] = o.Buyer
	}
}
