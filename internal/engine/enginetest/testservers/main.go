// Command testservers starts the servers of make test, runs a command, and ends the servers:
//
//	go run ./internal/engine/enginetest/testservers go test ./...
//
// A set is a MariaDB, a PostgreSQL, a Redis and the nodes of Redlock. Each test binary needs a set for itself.
// The reason: MariaDB counts the statements that wait for a row over all of its databases, and tests read that
// number. There are as many sets as go test runs binaries at the same time.
//
//	testservers --- go test -p 2 --- explore.test      lockstrategy.test
//	    |                                 | enginetest       |
//	    +--- set 1 <------ connection ----+                  |
//	    +--- set 2 <------ connection -----------------------+
//
// Package enginetest asks for a set over a connection to the address in OVERSELL_TEST_SERVERS. The set
// is free again when that connection ends, even if the binary is killed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest/serverset"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

func main() {
	sets := flag.Int("sets", 2, "number of test binaries that run at the same time")
	flag.Parse()
	code, err := run(*sets, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		code = 2
	}
	os.Exit(code)
}

// run starts the sets and returns the exit code of the command. A signal to this process first ends the command.
func run(sets int, command []string) (code int, err error) {
	if len(command) == 0 || sets < 1 {
		return 0, errors.New("usage: testservers [-sets N] COMMAND [ARGS]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	group, err := localserver.NewGroup()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	free := make(chan serverset.Set, sets)
	var starts errgroup.Group
	for range sets {
		starts.Go(func() error {
			set, err := start(group)
			free <- set
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	go lend(listener, free)

	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test passes the signal on to its children
	cmd.Env = append(os.Environ(), serverset.Variable+"="+listener.Addr().String())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code >= 0 { // -1: the command did not start, or a signal ended it
		return code, nil
	}
	return 0, err
}

func start(group *localserver.Group) (set serverset.Set, _ error) {
	var servers errgroup.Group
	servers.Go(func() error {
		db, err := localserver.StartMySQL(group)
		if err == nil {
			set.MySQL = db.URL()
		}
		return err
	})
	servers.Go(func() error {
		db, err := localserver.StartPostgres(group)
		if err == nil {
			set.Postgres = db.URL()
		}
		return err
	})
	servers.Go(func() error {
		redis, err := localserver.RedisNamed("")
		if err != nil {
			return err
		}
		locks, err := localserver.StartLockServers(group, []string{"redis", "redlock"}, redis, engine.RedlockNodes, nil)
		if err != nil {
			return err
		}
		set.Redis = locks.Redis.URL()
		for _, node := range locks.Redlock {
			set.Redlock = append(set.Redlock, node.URL())
		}
		return nil
	})
	return set, servers.Wait()
}

// lend gives each connection a set of its own until the other end closes it.
func lend(listener net.Listener, free chan serverset.Set) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // the command has ended
		}
		go func() {
			set := <-free
			defer func() { free <- set }()
			defer conn.Close()
			if json.NewEncoder(conn).Encode(set) == nil {
				_, _ = conn.Read(make([]byte, 1))
			}
		}()
	}
}
