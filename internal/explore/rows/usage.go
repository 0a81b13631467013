package rows

import (
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Usage lists the rows that a command uses.
type Usage struct {
	Now   *schedule.Footprint // with the command; nil: not known
	Key   string              // of Now, if it is the same text in each run; otherwise ""
	all   schedule.Footprint  // also with the COMMIT of its transaction
	new   []effect.Values     // for an INSERT with one table: its rows
	table string
	finds effect.Rows // for an UPDATE
	at    int         // the number of executed commands when it came
	knew  []cell      // where it relied on the images of rows that others can see
	ids   bool        // the statement has a value that the server has generated
}

// A Used is an executed command.
type Used struct {
	buyer int
	Usage
}
