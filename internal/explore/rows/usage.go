package rows

import (
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Usage lists the rows that a command uses. Such a list is the command's footprint.
type Usage struct {
	Now   *schedule.Footprint // footprint of the command; nil: unknown
	Key   string              // Now as text, if that is the same in each run; otherwise ""
	all   schedule.Footprint  // footprint of the command and the COMMIT of its transaction
	new   []effect.Values     // for an INSERT: the new rows; for an UPDATE: the assigned values
	table string
	finds effect.Rows // for an UPDATE or a DELETE: its rows
	at    int         // number of executed commands when this command arrived
	knew  []cell      // remembered values (of a column in a row) that Now relies on, in rows that other buyers can see
	ids   bool        // the statement contains a server-generated value
}

// A Used is an executed command.
type Used struct {
	buyer int
	Usage
}
