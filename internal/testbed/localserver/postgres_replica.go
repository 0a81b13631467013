package localserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// A Replicated is a database that a replica can follow.
type Replicated interface {
	Database
	// Replicate restarts the database and starts a replica of it. The replica connects to the address
	// `through`, host:port. If `synchronous` is true, each later COMMIT waits until a replica has it.
	Replicate(through string, synchronous bool) (Replica, error)
	Alone() error  // ends the wait of each COMMIT for a replica
	Remove() error // removes the server and its files
}

// A Replica follows another database until it is promoted.
type Replica interface {
	Database
	Promote() error
	Remove() error // removes the replica and its files
}

const replicaTimeout = 30 * time.Second

// Replicate copies the files of the server while it is down. pg_basebackup would be one more program to install.
//
// If `synchronous` is true, one replica, any of them, must confirm each COMMIT (PostgreSQL 15 manual,
// 27.2.8.2). Replicate sets this before the server is back, so that it applies to every COMMIT.
func (p *Postgres) Replicate(through string, synchronous bool) (Replica, error) {
	// SIGINT rolls back open transactions; SIGTERM alone would wait for them (manual, 19.5).
	if err := errors.Join(p.Signal(syscall.SIGINT), p.Stop(replicaTimeout)); err != nil {
		return nil, fmt.Errorf("stop %s: %w", p.name, err)
	}
	in, err := p.group.newFolder("postgres", p.in.user)
	if err != nil {
		return nil, err
	}
	if err := in.copyData(p.in); err != nil {
		return nil, err
	}
	if err := in.write("data/standby.signal", ""); err != nil {
		return nil, err
	}
	if synchronous {
		settings, err := os.OpenFile(p.in.data("postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		_, err = settings.WriteString("synchronous_standby_names = 'ANY 1 (*)'\n")
		if err := errors.Join(err, settings.Close()); err != nil {
			return nil, err
		}
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(through)
	if err != nil {
		return nil, err
	}
	primary := fmt.Sprintf("primary_conninfo=host=%s port=%s user=shop password=%s", host, port, p.password)
	replica, err := onFreePort(p.group, func(port int) (*Postgres, error) {
		r := p.at(in, port, primary)
		return r, r.Start()
	})
	if err != nil {
		return nil, err
	}
	state := "async"
	if synchronous {
		state = "quorum"
	}
	return replica, p.await("a replica follows", "SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '"+state+"'")
}

// Alone lets every COMMIT return without a replica, including COMMITs that already wait.
func (p *Postgres) Alone() error {
	ctx, cancel := context.WithTimeout(context.Background(), replicaTimeout)
	defer cancel()
	return errors.Join(
		p.exec(ctx, "shop", "ALTER SYSTEM RESET synchronous_standby_names"), p.exec(ctx, "shop", "SELECT pg_reload_conf()"))
}

// Promote makes the replica accept writes, and returns when it does.
func (p *Postgres) Promote() error {
	ctx, cancel := context.WithTimeout(context.Background(), replicaTimeout)
	defer cancel()
	if err := p.exec(ctx, "shop", "SELECT pg_promote(false)"); err != nil {
		return err
	}
	return p.await("the replica takes writes", "SELECT NOT pg_is_in_recovery()")
}

// Remove kills the server and removes its files.
func (p *Postgres) Remove() error {
	err := p.Kill()
	removeSharedMemory(p.in.path)
	return errors.Join(err, os.RemoveAll(p.in.path))
}

func (p *Postgres) await(what, query string) error {
	deadline := time.Now().Add(replicaTimeout)
	for {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		yes, err := p.ask(ctx, query)
		cancel()
		switch {
		case err == nil && yes:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("not within %s: %s; %w", replicaTimeout, what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
