package app

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Guard refuses servers on other machines, since the search runs the statements of reset repeatedly. The parameter
// `allowed` is the host:port of a remote server that may be wiped, or "". The error is one line.
func (a *App) Guard(allowed string) error {
	if a.Local {
		return nil
	}
	a.allowed = allowed
	for _, name := range protocols {
		s := a.server(name)
		if s == nil {
			continue
		}
		address := s.Address
		if address == allowed || loopback(address) {
			continue
		}
		return fmt.Errorf("%s at %s is on another machine, and reset changes it before each run; if its data may be deleted, add --yes-this-database-may-be-wiped %s", name, address, address)
	}
	return nil
}

// guardRedis refuses a Redis with keys in a database that oversell.yaml does not name. Events such as an expiry
// remove keys from every database, since a program may SELECT any.
func guardRedis(ctx context.Context, client *redis.Client, address string) error {
	keyspace, err := client.Info(ctx, "keyspace").Result()
	if err != nil {
		return err
	}
	for _, db := range databaseWithKeys.FindAllStringSubmatch(keyspace, -1) {
		if number := strconv.Itoa(client.Options().DB); db[1] != number {
			return fmt.Errorf("redis at %s has keys in database %s, not only in %s, and the search changes keys in all databases; use a separate Redis, for example with `local: true`, or, if the keys may be deleted, add --yes-this-database-may-be-wiped %[1]s",
				address, db[1], number)
		}
	}
	return nil
}

// databaseWithKeys matches a line of INFO keyspace.
var databaseWithKeys = regexp.MustCompile(`(?m)^db(\d+):`)

// loopback reports whether all addresses of the name belong to this machine's loopback.
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
