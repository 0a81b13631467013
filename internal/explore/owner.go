package explore

import (
	"fmt"
	"strings"
)

// own keeps account of whose the keys are, and notes where a buyer frees what
// is another's: the schedule may end well all the same.
func (r *run) own(o *op) {
	if o.server == "sql" || !o.changed {
		return
	}
	command, rest, _ := strings.Cut(o.name, " ")
	key := rest
	if command == "script" { // script "what it does" key key
		i := strings.LastIndex(rest, `" `)
		key, _, _ = strings.Cut(rest[i+2:], " ")
	}
	if command == "EXPIRE" || command == "PEXPIRE" {
		return // whose it is stays as it was
	}
	key = o.server + " " + key
	if command != "DEL" && !strings.Contains(o.name, "delete if mine") && !strings.Contains(o.name, "Gives back one hold") {
		r.owners[key] = o.buyer
		return
	}
	owner := r.owners[key]
	if o.beside != nil && o.beside.buyer == owner {
		return // which of the two came first only the server knows
	}
	if owner != 0 && owner != o.buyer {
		o.note = fmt.Sprintf("it has deleted the lock of buyer %d", owner)
		r.foreign = true
	}
	delete(r.owners, key)
}
