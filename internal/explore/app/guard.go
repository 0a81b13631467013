package app

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Guard refuses servers that are not on this machine: the search runs what reset says again
// and again. allowed is the host:port of one that may be wiped; "": none. The error is one
// line.
func (a *App) Guard(allowed string) error {
	if a.Local {
		return nil
	}
	for _, name := range []string{"mysql", "postgres", "redis"} {
		s := a.server(name)
		if s == nil {
			continue
		}
		address := s.Address
		if address == allowed || loopback(address) {
			continue
		}
		return fmt.Errorf("%s at %s is not on this machine, and what reset says is done to it before each run; if it may be wiped: --yes-this-database-may-be-wiped %s", name, address, address)
	}
	return nil
}

// loopback: all addresses that the name has are this machine's own.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	for _, ip := range found {
		if !ip.IP.IsLoopback() {
			return false
		}
	}
	return err == nil && len(found) > 0
}
