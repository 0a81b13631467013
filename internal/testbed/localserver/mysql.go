package localserver

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the probe speaks its protocol
)

// MySQL is a running mariadbd or mysqld with an empty database "shop". Started
// again after it was killed, it has its data.
type MySQL struct {
	Server
	password string
}

// URL is the form that --db takes.
func (m *MySQL) URL() string { return "mysql://shop:" + m.password + "@" + m.Addr + "/shop" }

// StartMySQL starts mariadbd, or mysqld where that is what the machine has.
// ErrMissing when the machine has neither.
//
// A commit is on the disk when it returns: its log is written and synced. A
// SIGKILL of the server alone does not ask for that much, since what was written
// is the kernel's by then and outlives the process; the sync is for a machine
// that loses its power, which nothing here does to it.
func StartMySQL(g *Group) (*MySQL, error) {
	path, err := program(getMySQL, "mariadbd", "mysqld")
	if err != nil {
		return nil, err
	}
	return startMySQL(g, path)
}

// StartMariaDB is StartMySQL with MariaDB alone.
func StartMariaDB(g *Group) (*MySQL, error) {
	path, err := program("apt-get install mariadb-server, or brew install mariadb", "mariadbd")
	if err != nil {
		return nil, err
	}
	return startMySQL(g, path)
}

// StartMySQLOnly is StartMySQL with MySQL alone. MariaDB's packages have a mysqld, too.
func StartMySQLOnly(g *Group) (*MySQL, error) {
	const get = "dev.mysql.com/downloads, or brew install mysql"
	path, err := program(get, "mysqld")
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
			"--pid-file=" + in.file("pid"), "--init-file=" + in.file("setup.sql"), "--innodb-flush-log-at-trx-commit=1",
			"--skip-name-resolve", "--max-connections=500", "--character-set-server=utf8mb4", "--loose-mysqlx=OFF",
		})
		return m, m.Start()
	})
}

// setupSQL runs at each start, before the first connection. Nobody else on this
// machine can log in: root gets a password that is thrown away.
func setupSQL(password string) string {
	return strings.Join([]string{
		"CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;",
		"CREATE USER IF NOT EXISTS 'shop'@'127.0.0.1' IDENTIFIED BY '" + password + "';",
		"GRANT ALL ON *.* TO 'shop'@'127.0.0.1' WITH GRANT OPTION;",
		"ALTER USER 'root'@'localhost' IDENTIFIED BY '" + rand.Text() + "';",
	}, "\n") + "\n"
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

// getMySQL is how to get what is missing.
const getMySQL = "apt-get install mariadb-server, or brew install mariadb"

// initialize makes the folders of a server and an empty database in them.
func initialize(g *Group, server string, in folder) error {
	if err := in.mkdir("tmp"); err != nil {
		return err
	}
	install := []string{server, "--initialize-insecure"} // MySQL 8.0 manual, 2.9.1
	if strings.HasSuffix(server, "mariadbd") {
		installer := filepath.Join(filepath.Dir(server), "mariadb-install-db")
		if _, err := os.Stat(installer); err != nil { // Debian: the server in sbin, this in bin
			if installer, err = program(getMySQL, "mariadb-install-db"); err != nil {
				return err
			}
		}
		install = []string{installer, "--auth-root-authentication-method=normal", "--skip-test-db"}
	}
	_, err := in.run(g, slices.Concat(install[:1], commonArgs(in), install[1:])...)
	return err
}

// commonArgs: --no-defaults must come first; a server refuses to run as root
// unless it is told to. When it starts, MariaDB deletes the temporary tables
// that it finds, so a tmpdir that is everybody's would be wiped under others.
func commonArgs(in folder) []string {
	args := []string{"--no-defaults", "--datadir=" + in.file("data"), "--tmpdir=" + in.file("tmp")}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	return args
}
