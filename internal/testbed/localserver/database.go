package localserver

import (
	"os"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/nearest"
)

// A Database is a running SQL server with an empty database "shop". Started again
// after it was killed, it has its data.
type Database interface {
	URL() string     // the form that --db takes
	Address() string // host:port
	Start() error    // again
	Kill() error
	Signal(sig os.Signal) error
}

// A DatabaseServer is one that this room can start: one file, and one line in
// DatabaseServers.
type DatabaseServer struct {
	Name     string // as --local-db names it
	Database string // as the promises of the catalogue name it
	start    func(*Group) (Database, error)
}

// DatabaseServers are the values of --local-db.
func DatabaseServers() []DatabaseServer {
	return append([]DatabaseServer{
		{"mariadb", dialect.MySQL, started(StartMariaDB)},
		{"mysql", dialect.MySQL, started(StartMySQLOnly)},
		{dialect.Postgres, dialect.Postgres, started(StartPostgres)},
		{dialect.PostgresRepeatableRead, dialect.PostgresRepeatableRead, started(postgresAt("repeatable read"))},
		{dialect.PostgresSerializable, dialect.PostgresSerializable, started(postgresAt("serializable"))},
	}, galeraServers()...)
}

// DatabaseNamed finds a server; "" is the default: MariaDB, or MySQL where that is what
// the machine has.
func DatabaseNamed(name string) (DatabaseServer, error) {
	if name == "" {
		return DatabaseServer{"", dialect.MySQL, started(StartMySQL)}, nil
	}
	for _, d := range DatabaseServers() {
		if d.Name == name {
			return d, nil
		}
	}
	return DatabaseServer{}, nearest.Unknown("database", name, DatabaseNames(), "")
}

// DatabaseNames returns the values of --local-db.
func DatabaseNames() (names []string) {
	for _, d := range DatabaseServers() {
		names = append(names, d.Name)
	}
	return names
}

// Start starts the server. ErrMissing when the machine has not its program.
func (d DatabaseServer) Start(g *Group) (Database, error) { return d.start(g) }

func started[Server Database](start func(*Group) (Server, error)) func(*Group) (Database, error) {
	return func(g *Group) (Database, error) {
		server, err := start(g)
		if err != nil {
			return nil, err // no nil pointer in an interface
		}
		return server, nil
	}
}
