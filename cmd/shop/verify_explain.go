package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/judge/verify"
)

// matrixResults is the folder in which `make verify` keeps its JSON reports.
const matrixResults = "bin/matrix"

// explainCell prints the evidence of one cell (a strategy under a condition) of an earlier run.
func (o *verifyOptions) explainCell(c *cobra.Command) (err error) {
	if o.explain == "" {
		return errors.New("--from belongs to --explain; name a cell, for example --explain redis/pause")
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "explain" && f.Name != "from" {
			err = cmp.Or(err, fmt.Errorf("--explain reads an earlier run and takes only --from; leave out --%s", f.Name))
		}
	})
	if err != nil {
		return err
	}
	path := cmp.Or(o.from, verify.Newest(matrixResults))
	if path == "" {
		return errors.New("no result in " + matrixResults + "; run make verify, or give --from the file of a shop verify --report FILE.json")
	}
	report, err := verify.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--from: %w; write one with: shop verify --report FILE.json", err)
	}
	cell, err := report.Cell(o.explain)
	if err != nil {
		return fmt.Errorf("--explain: %w (%s)", err, path)
	}
	_, err = io.WriteString(c.OutOrStdout(), verify.Explain(*cell))
	return err
}
