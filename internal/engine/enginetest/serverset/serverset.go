// Package serverset describes the servers that the command testservers lends to a test binary.
package serverset

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
)

// Variable is the environment variable with the address of testservers, host:port. Without testservers it is empty.
const Variable = "OVERSELL_TEST_SERVERS"

// A Set contains the URL of each server, as --db, --redis and --redlock take it.
type Set struct {
	MySQL, Postgres, Redis string
	Redlock                []string

	lease net.Conn // the set is free again when this connection ends
}

// Borrow returns a set of servers, and waits until one is free. It returns nil if testservers does not run. The
// set belongs to the caller as long as the caller keeps it. A test binary must borrow only one set, since a
// second set may never become free.
func Borrow() (*Set, error) {
	address := os.Getenv(Variable)
	if address == "" {
		return nil, nil
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("servers of make test: %w", err)
	}
	set := &Set{lease: conn}
	return set, json.NewDecoder(conn).Decode(set)
}
