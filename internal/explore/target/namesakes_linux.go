package target

import (
	"fmt"
	"os"
	"regexp"

	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/instance"
)

// A namesakes detects two instances that send the same host name and process id. They probably use this text as a token
// that should be unique.
type namesakes struct {
	instances *instance.Instances
	first     map[string]int // by process id: the first buyer that sent it
	same      string         // the text that two instances have both sent; "": none
}

// hostName matches the name of this host. All instances have this name.
var hostName = func() *regexp.Regexp {
	name, _ := os.Hostname() // without a host name, nothing is detected
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
