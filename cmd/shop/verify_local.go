package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/verify"
)

// local runs all cells (strategies under conditions) on private servers, and prints the folder with the
// recorded events. Without --history, it removes the folder if every cell is as promised.
func (o *verifyOptions) local(c *cobra.Command, cells verify.Config) (verify.Report, error) {
	kept, made, err := verify.HistoryFolder(o.history)
	if err != nil {
		return verify.Report{}, err
	}
	var times fault.Times           // the zero value means the default times
	if c.Flags().Changed("lease") { // adapt the other times, since a buyer must be able to wait for the end of a lease
		times = fault.Times{Wait: max(fault.DefaultTimes().Wait, o.lease+5*time.Second), Lease: o.lease}
	}
	cells.Launch, cells.Times, cells.Redlock, cells.History = fault.OwnShop, times, o.redlock, kept
	cells.LocalDB, cells.LocalRedis, cells.RedisWait = o.servers.LocalDB, o.servers.LocalRedis, o.redisWait
	cells.Lanes, cells.Repeat = o.lanes, o.repeat
	report, err := cells.Local(c.Context())
	if made && (len(report.Cells) == 0 || o.history == "" && report.OK) {
		report.ForgetHistories()
		return report, errors.Join(err, os.RemoveAll(kept))
	}
	fmt.Fprintln(c.ErrOrStderr(), "histories: "+kept)
	return report, err
}
