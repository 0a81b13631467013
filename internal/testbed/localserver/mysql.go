package localserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the function that checks whether the server answers uses this driver
)

// MySQL is a running mariadbd or mysqld with an empty database "shop". After a kill and a restart it
// still has its data.
type MySQL struct {
	Server
	password string
}

// URL returns the value for --db.
func (m *MySQL) URL() string { return "mysql://shop:" + m.password + "@" + m.Addr + "/shop" }

// StartMySQL starts mariadbd, or mysqld if only that is installed. It returns ErrMissing if neither is.
//
// A commit is on the disk when it returns: its log is written and synced. Writing alone would survive a
// SIGKILL of the server, since the kernel keeps the data. The sync also protects against a power failure,
// which no fault of the tests causes.
func StartMySQL(g *Group) (*MySQL, error) {
	path, err := Program("mysql")
	if err != nil {
		return nil, err
	}
	return startMySQL(g, path)
}

// StartMariaDB is StartMySQL, but starts only MariaDB.
func StartMariaDB(g *Group) (*MySQL, error) {
	path, err := findProgram("apt-get install mariadb-server, or brew install mariadb", "mariadbd")
	if err != nil {
		return nil, err
	}
	return startMySQL(g, path)
}

// StartMySQLOnly is StartMySQL, but starts only MySQL. A mysqld may also come from MariaDB's packages.
func StartMySQLOnly(g *Group) (*MySQL, error) {
	const get = "dev.mysql.com/downloads, or brew install mysql"
	path, err := findProgram(get, "mysqld")
	if err != nil {
		return nil, err
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", path, err)
	}
	if strings.Contains(string(version), "MariaDB") {
		return nil, fmt.Errorf("mysqld: %w: %s is MariaDB; get it with: %s", ErrMissing, path, get)
	}
	return startMySQL(g, path)
}

func startMySQL(g *Group, path string) (*MySQL, error) {
	in, err := g.newFolder("mysql", nil)
	if err != nil {
		return nil, err
	}
	if err := initialize(g, path, in); err != nil {
		return nil, err
	}
	password := rand.Text()
	if err := in.write("setup.sql", setupSQL(password)); err != nil {
		return nil, err
	}
	return onFreePort(g, func(port int) (*MySQL, error) {
		m := &MySQL{newServer(g, filepath.Base(path), in, port), password}
		m.probe = m.ping
		m.command = slices.Concat([]string{path}, commonArgs(in), []string{
			"--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--socket=" + in.file("sock"),
			"--pid-file=" + in.file("pid"), "--init-file=" + in.file("setup.sql"), "--innodb-flush-log-at-trx-commit=1", redoLogSize,
			"--skip-name-resolve", "--max-connections=500", "--character-set-server=utf8mb4", "--loose-mysqlx=OFF",
		})
		return m, m.Start()
	})
}

// setupSQL returns statements that run at each start, before the first connection. Root gets a random
// password that is not stored, so no other user of this machine can log in.
func setupSQL(password string) string {
	return strings.Join([]string{
		"CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;",
		"CREATE USER IF NOT EXISTS 'shop'@'127.0.0.1' IDENTIFIED BY '" + password + "';",
		"GRANT ALL ON *.* TO 'shop'@'127.0.0.1' WITH GRANT OPTION;",
		"ALTER USER 'root'@'localhost' IDENTIFIED BY '" + rand.Text() + "';",
	}, "\n") + "\n"
}

// Client returns a command that runs SQL from its stdin in a database. The command is the client mariadb or
// mysql, which the packages of MariaDB and MySQL contain. Client returns ErrMissing if there is neither. The
// password is in an environment variable, since every user can see a command line.
func (m *MySQL) Client(ctx context.Context, database string) (*exec.Cmd, error) {
	names, options := []string{"mariadb", "mysql"}, []string{"--skip-ssl"} // later versions of the client insist on TLS
	if m.name == "mysqld" {
		names, options = []string{"mysql", "mariadb"}, nil
	}
	in := filepath.Dir(m.command[0])
	client, err := findProgram("apt-get install mariadb-client, or brew install mariadb", filepath.Join(in, names[0]), names[0], names[1])
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(m.Addr)
	if err != nil {
		return nil, err
	}
	args := append([]string{"--no-defaults", "--batch", "--skip-column-names", "--default-character-set=utf8mb4", "--protocol=tcp", "--host=" + host, "--port=" + port, "--user=shop"}, options...)
	cmd := exec.CommandContext(ctx, client, append(args, database)...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+m.password, "LC_ALL=C")
	return cmd, nil
}

func (m *MySQL) ping() error {
	db, err := sql.Open("mysql", "shop:"+m.password+"@tcp("+m.Addr+")/shop?timeout=1s")
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return db.PingContext(ctx)
}

// redoLogSize keeps the files small, since each start copies them. MariaDB's default is 96 MB.
const redoLogSize = "--loose-innodb-log-file-size=16M"

const getMySQL = "apt-get install mariadb-server, or brew install mariadb"

// initialize creates the folders of a server with an empty database.
func initialize(g *Group, server string, in folder) error {
	if err := in.mkdir("tmp"); err != nil {
		return err
	}
	install := []string{server, "--initialize-insecure", redoLogSize} // MySQL 8.0 manual, 2.9.1
	if strings.HasSuffix(server, "mariadbd") {
		installer := filepath.Join(filepath.Dir(server), "mariadb-install-db")
		if _, err := os.Stat(installer); err != nil { // Debian has the server in sbin and the installer in bin
			if installer, err = findProgram(getMySQL, "mariadb-install-db"); err != nil {
				return err
			}
		}
		install = []string{installer, "--auth-root-authentication-method=normal", "--skip-test-db", redoLogSize}
	}
	ready := templateOf(filepath.Base(server), server, install...)
	if _, ok := ready.copyTo(in); ok {
		return nil
	}
	if _, err := in.run(g, slices.Concat(install[:1], commonArgs(in), install[1:])...); err != nil {
		return err
	}
	ready.keep(in, "")
	return nil
}

// commonArgs returns the arguments of every server. --no-defaults must come first. A server refuses to run as root
// without --user. At its start MariaDB deletes all temporary tables in tmpdir, so tmpdir must not be shared.
func commonArgs(in folder) []string {
	args := []string{"--no-defaults", "--datadir=" + in.file("data"), "--tmpdir=" + in.file("tmp")}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	return args
}
