package target

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/fold"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/witness"
)

// folded returns the short form of the steps for people; nil in a run that is not observed. It leaves
// out no step at a database whose tables cannot be read.
func (w *recorder) folded(ctx context.Context, e *schedule.Ended, shared bool) *witness.Folded {
	if !w.Observe {
		return nil
	}
	tables := readTables(ctx, w.servers)
	return fold.Fold(fold.Run{Steps: e.Steps, Verdict: e.Verdict, Findings: e.Findings, Watch: e.Watch, Tables: tables, Shared: shared})
}

// readTables returns the tables of each database by its protocol, except those that cannot be read.
func readTables(ctx context.Context, servers *app.Servers) map[string]serverstate.Tables {
	tables := map[string]serverstate.Tables{}
	for _, protocol := range []string{"mysql", "postgres"} {
		if db := servers.SQL(protocol); db != nil {
			bounded, cancel := context.WithTimeout(ctx, tablesTimeout)
			if found, err := serverstate.ReadTables(bounded, db, protocol); err == nil {
				tables[protocol] = found
			}
			cancel()
		}
	}
	return tables
}

// tablesTimeout bounds the queries for the tables, since a program may have left a lock on the catalog.
const tablesTimeout = 5 * time.Second
