// Package serverset describes the servers that testservers lends to a test binary.
package serverset

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
)

// Variable has the address of testservers, host:port. It is empty if none runs.
const Variable = "OVERSELL_TEST_SERVERS"

// A Set has the URL of each server, as --db, --redis and --redlock take it.
type Set struct {
	MySQL, Postgres, Redis string
	Redlock                []string

	lease net.Conn // the set belongs to its borrower until this connection ends
}

// Borrow returns a set of servers, and waits until one is free. It returns nil if testservers does
// not run. The set belongs to the caller as long as the caller keeps it. A test binary must borrow only
// one: there may be no second.
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
