package main

import (
	"testing"

	"github.com/oversell/oversell/internal/require"
)

// TestScanCommand: the printed command has the flags that were given, so it repeats the scan.
func TestScanCommand(t *testing.T) {
	c := scanCommand()
	require.NoError(t, c.ParseFlags([]string{"--har", "a b.har", "--curl=c.txt", "--budget", "90s", "--yes-this-database-may-be-wiped", "db:3306", "--save", "races", "--json"}))
	o := scanOptions{file: "oversell.yaml", sources: map[string]*string{"curl": nil, "har": nil, "openapi": nil}}
	if got, want := o.command(c.Flags()), "shop scan --app oversell.yaml --budget 1m30s --curl c.txt --har 'a b.har' --yes-this-database-may-be-wiped 'db:3306'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
