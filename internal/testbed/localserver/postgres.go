package localserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Postgres is a running PostgreSQL with an empty database "shop". After a kill and a restart it still has its data.
type Postgres struct {
	Server
	bin      string // folder of its programs
	password string
	settings []string // additional settings of the server
}

// URL returns the value for --db.
func (p *Postgres) URL() string { return p.url("shop") }

func (p *Postgres) url(database string) string {
	return "postgres://shop:" + p.password + "@" + p.Addr + "/" + database + "?sslmode=disable"
}

// StartPostgres starts postgres from the folder SHOP_POSTGRES_BIN, or the newest installed version. It
// returns ErrMissing if there is none.
//
// A commit is on the disk when it returns: fsync and synchronous_commit are on, which is the default.
// Only the program initdb, which creates the files, does not sync: its data need not survive a crash.
func StartPostgres(g *Group) (*Postgres, error) { return startPostgres(g) }

func startPostgres(g *Group, settings ...string) (*Postgres, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	who, err := notRoot("postgres", "nobody") // PostgreSQL 15 manual, 19.1
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	in, err := g.newFolder("postgres", who)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	password, err := initdb(g, bin, in)
	if err != nil {
		return nil, err
	}
	first := &Postgres{Server: Server{group: g}, bin: bin, password: password, settings: settings}
	return onFreePort(g, func(port int) (*Postgres, error) {
		p := first.at(in, port)
		return p, p.Start()
	})
}

// Client returns a psql command for a database. The command runs the SQL from its stdin. Client returns ErrMissing if there is no psql. PG variables in this process's environment have no
// effect. The password is in an environment variable, since every user can see a command line.
func (p *Postgres) Client(ctx context.Context, database string) (*exec.Cmd, error) {
	psql, err := findProgram("apt-get install postgresql-client, or brew install postgresql", filepath.Join(p.bin, "psql"), "psql")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, psql, "--no-psqlrc", "--no-password", "--quiet", "--host="+host, "--port="+port, "--username=shop", "--dbname="+database, "--file=-")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "PG") })
	cmd.Env = append(cmd.Env, "PGPASSWORD="+p.password, "LC_ALL=C")
	return cmd, nil
}

// at returns a server with the same programs and users, in another folder and on another port.
func (p *Postgres) at(in folder, port int, settings ...string) *Postgres {
	other := &Postgres{Server: newServer(p.group, "postgres", in, port), bin: p.bin, password: p.password, settings: p.settings}
	other.childrenOwnSessions, other.probe = true, other.ping
	other.command = []string{filepath.Join(p.bin, "postgres"), "-D", in.file("data"), "-p", strconv.Itoa(port)}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=500",
		"dynamic_shared_memory_type=mmap", // uses files in the folder, which are removed with it
	}, slices.Concat(p.settings, settings)...) {
		other.command = append(other.command, "-c", setting)
	}
	return other
}

// postgresAt returns a function like StartPostgres whose server has another default isolation level. The level
// is a setting of the server, since PgBouncer refuses it as a setting of a session.
func postgresAt(isolation string) func(*Group) (*Postgres, error) {
	return func(g *Group) (*Postgres, error) {
		return startPostgres(g, "default_transaction_isolation="+isolation)
	}
}

// initdb creates the files and returns the password of the user `shop`, the owner of all databases. No other user
// of this machine can log in. Passwords are compared as MD5: SCRAM would cost 4,096 rounds for each
// connection, and a temporary server on loopback does not need that protection.
func initdb(g *Group, bin string, in folder) (password string, err error) {
	command := []string{
		filepath.Join(bin, "initdb"), "--username=shop", "--auth=md5",
		"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
	}
	ready := templateOf("postgres", command[0], command[1:]...)
	if password, ok := ready.copyTo(in); ok {
		return password, nil
	}
	password = rand.Text()
	if err := in.write("password", password); err != nil {
		return "", err
	}
	secret := in.file("password")
	_, err = in.run(g, append(command, "-D", in.file("data"), "--pwfile="+secret)...)
	if err := errors.Join(err, os.Remove(secret)); err != nil {
		return "", err
	}
	ready.keep(in, password)
	return password, nil
}

// ping checks that the server answers. At the first start it creates the database.
func (p *Postgres) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := p.exec(ctx, "shop", "")
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == "3D000" { // invalid_catalog_name: the database does not exist
		slow, cancel := context.WithTimeout(context.Background(), p.startTimeout) // versions up to 14 copy files to create a database, which takes longer
		defer cancel()
		err = p.exec(slow, "postgres", "CREATE DATABASE shop")
	}
	return err
}

func (p *Postgres) exec(ctx context.Context, database, statement string) error {
	conn, err := p.connect(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// connect opens a connection with an isolation level that a replica accepts. A replica refuses SERIALIZABLE
// (PostgreSQL 15 manual, 27.4.3).
func (p *Postgres) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, p.url(database)+"&default_transaction_isolation=read%20committed")
}

// ask runs a query in the database "shop" that returns a boolean.
func (p *Postgres) ask(ctx context.Context, query string) (yes bool, err error) {
	conn, err := p.connect(ctx, "shop")
	if err != nil {
		return false, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, query).Scan(&yes)
	return yes, err
}

// postgresBin returns the folder of initdb and postgres, which is not in PATH on Debian.
func postgresBin() (string, error) {
	whole := func(dir string) bool {
		for _, name := range []string{"initdb", "postgres"} {
			if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
				return false
			}
		}
		return true
	}
	if dir := os.Getenv("SHOP_POSTGRES_BIN"); dir != "" {
		if !whole(dir) {
			return "", fmt.Errorf("SHOP_POSTGRES_BIN is %s: initdb and postgres are not there", dir)
		}
		return filepath.Abs(dir)
	}
	var dirs []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern) // the patterns are valid
		slices.SortFunc(found, func(a, b string) int { return versionIn(b) - versionIn(a) })
		dirs = append(dirs, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if i := slices.IndexFunc(dirs, whole); i >= 0 {
		return dirs[i], nil
	}
	return "", fmt.Errorf("postgres: %w; get it with: apt-get install postgresql, or brew install postgresql, or name a folder with initdb and postgres in SHOP_POSTGRES_BIN", ErrMissing)
}

// versionIn returns the version in a path such as /usr/lib/postgresql/15/bin.
func versionIn(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	version, _ := strconv.Atoi(digits[0])
	return version
}

// removeSharedMemory removes the System V segments of killed PostgreSQL servers. A segment has a few
// bytes and shows other servers that the data folder is in use (PostgreSQL 15 manual, 19.4.1). Its id is
// the last word of line 7 of postmaster.pid.
func removeSharedMemory(serverDirs ...string) {
	for _, dir := range serverDirs {
		file := filepath.Join(dir, "data", "postmaster.pid")
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		lines := strings.Split(string(text), "\n")
		if len(lines) < 7 {
			continue
		}
		if words := strings.Fields(lines[6]); len(words) > 0 {
			_ = exec.Command("ipcrm", "-m", words[len(words)-1]).Run() // already gone if the server ended by itself
		}
	}
}
