package localserver

import (
	"os"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/nearest"
)

// A Database is a running SQL server with an empty database "shop". After a kill and a restart it still
// has its data.
type Database interface {
	URL() string     // the form that --db takes
	Address() string // host:port
	Start() error    // restarts the server
	Kill() error
	Signal(sig os.Signal) error
	Freeze() error // stops it with SIGSTOP
	Thaw() error
}

// A DatabaseServer is a kind of database that this package can start. Each kind has its own file, and a line
// in the function DatabaseServers.
type DatabaseServer struct {
	Name     string // name for --local-db
	Database string // name of the database in the catalogue of strategies
	start    func(*Group) (Database, error)
}

// DatabaseServers returns the values of --local-db.
func DatabaseServers() []DatabaseServer {
	return []DatabaseServer{
		{"mariadb", dialect.MySQL, started(StartMariaDB)},
		{"mysql", dialect.MySQL, started(StartMySQLOnly)},
		{dialect.Postgres, dialect.Postgres, started(StartPostgres)},
		{dialect.PostgresRepeatableRead, dialect.PostgresRepeatableRead, started(postgresAt("repeatable read"))},
		{dialect.PostgresSerializable, dialect.PostgresSerializable, started(postgresAt("serializable"))},
		{dialect.Galera, dialect.Galera, started(StartGalera)},
	}
}

// DatabaseNamed returns a server by name. "" is the default: MariaDB, or MySQL if only that is installed.
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

// Start starts the server. It returns ErrMissing if the program is not installed.
func (d DatabaseServer) Start(g *Group) (Database, error) { return d.start(g) }

func started[Server Database](start func(*Group) (Server, error)) func(*Group) (Database, error) {
	return func(g *Group) (Database, error) {
		server, err := start(g)
		if err != nil {
			return nil, err // avoids a nil pointer in an interface
		}
		return server, nil
	}
}
