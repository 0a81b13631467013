package draft

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// A kind is a kind of server for which the explorer has a gate, with the address of a private server.
type kind struct {
	key                  string // key in oversell.yaml
	host, port           string
	user, database, path string   // path of the private server's URL
	schemes              []string // schemes of URLs, the usual one first
	image                *regexp.Regexp
	clients              []string // names of client libraries, in the form that the function `lower` returns
	words                *regexp.Regexp
}

var (
	mysql = &kind{
		key: "mysql", host: "127.0.0.1", port: "3306", user: "root", database: "shop", path: "/shop",
		schemes: []string{"mysql", "mysql2", "mariadb", "trilogy", "jdbc:mysql", "jdbc:mariadb"},
		image:   regexp.MustCompile(`(?:^|/)(?:mysql|mariadb|percona)(?:-server)?(?::|$)`),
		words:   regexp.MustCompile(`(?i)mysql|maria|trilogy`),
		clients: []string{
			"mysql", "mysql2", "mariadb", "promise-mysql", "pymysql", "mysqlclient", "aiomysql", "asyncmy", "mysql-connector-python", "trilogy", "ext-pdo-mysql", "ext-mysqli",
			"github.com/go-sql-driver/mysql", "gorm.io/driver/mysql", "mysql-connector-j", "mysql-connector-java", "mariadb-java-client",
		},
	}
	postgres = &kind{
		key: "postgres", host: "127.0.0.1", port: "5432", user: "shop", database: "shop", path: "/shop",
		schemes: []string{"postgresql", "postgres", "pgsql", "jdbc:postgresql"},
		image:   regexp.MustCompile(`(?:^|/)(?:postgres|postgresql|postgis|timescaledb|pgvector)(?::|$)`),
		words:   regexp.MustCompile(`(?i)postg(?:res|is)|pgsql|^PG`),
		clients: []string{
			"pg", "postgres", "pg-promise", "@prisma/adapter-pg", "psycopg", "psycopg2", "psycopg2-binary", "asyncpg", "pg8000", "ext-pdo-pgsql", "ext-pgsql",
			"github.com/lib/pq", "github.com/jackc/pgx", "gorm.io/driver/postgres", "postgresql",
		},
	}
	redis = &kind{
		key: "redis", host: "127.0.0.1", port: "6379", path: "/0",
		schemes: []string{"redis", "rediss"},
		image:   regexp.MustCompile(`(?:^|/)(?:redis|valkey|redis-stack(?:-server)?)(?::|$)`),
		words:   regexp.MustCompile(`(?i)redis|valkey`),
		clients: []string{
			"redis", "ioredis", "bull", "bullmq", "predis/predis", "ext-redis", "sidekiq", "aioredis", "redis-om",
			"github.com/redis/go-redis", "github.com/go-redis/redis", "github.com/gomodule/redigo", "github.com/redis/rueidis",
			"spring-boot-starter-data-redis", "jedis", "lettuce-core", "redisson", "redisson-spring-boot-starter",
		},
	}

	// kinds lists all kinds, the preferred first.
	kinds = []*kind{mysql, postgres, redis}
)

// hasClient reports whether a dependency is a client library of the server.
func (k *kind) hasClient(name string) bool {
	prefix, _, ok := module.SplitPathVersion(name)
	if !ok {
		prefix = name
	}
	return slices.Contains(k.clients, lower(prefix))
}

// ofScheme returns the kind of server for the scheme of a URL, such as postgresql+asyncpg; nil if there
// is none.
func ofScheme(scheme string) *kind {
	scheme, _, _ = strings.Cut(strings.ToLower(scheme), "+")
	for _, k := range kinds {
		if slices.Contains(k.schemes, scheme) {
			return k
		}
	}
	return nil
}

// ofWord returns the kind of server for a word such as pgsql or django.db.backends.mysql; nil if there
// is none.
func ofWord(word string) *kind {
	for _, k := range kinds {
		if k.words.MatchString(word) {
			return k
		}
	}
	return nil
}

// serverURL matches a URL of a server, with JDBC's prefix.
var serverURL = regexp.MustCompile(`^((?:jdbc:)?[a-zA-Z][\w+.]*)://([^?#]*)(\?[^#]*)?`)

// goDSN matches the data source name of Go's MySQL driver.
var goDSN = regexp.MustCompile(`^[^@\s/]*@tcp\([^)]*\)/[^?]*(\?.*)?$`)

// ofURL returns the kind of server for a URL or data source name; nil if there is none.
func ofURL(text string) *kind {
	if m := serverURL.FindStringSubmatch(text); m != nil {
		return ofScheme(m[1])
	}
	if goDSN.MatchString(text) {
		return mysql
	}
	return nil
}

// notPrivate are parameters of URLs for login, encryption and location, which a private server does not
// need.
var notPrivate = []string{
	"user", "username", "password", "pass", "passwd", "pwd", "sslmode", "ssl-mode", "sslaccept", "ssl", "sslcert", "sslkey", "sslrootcert", "sslpassword",
	"sslidentity", "host", "schema",
}

// private rewrites a URL or data source name so that it addresses the private server.
func (k *kind) private(text string) string {
	if m := goDSN.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s@tcp(%s:%s)/%s%s", k.user, k.host, k.port, k.database, m[1])
	}
	m := serverURL.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	scheme, user := m[1], k.user
	if scheme == "rediss" {
		scheme = "redis"
	}
	if strings.HasPrefix(scheme, "jdbc:") || user == "" {
		user = "" // JDBC takes the user from another property
	} else {
		user += "@"
	}
	query := ""
	if values, err := url.ParseQuery(strings.TrimPrefix(m[3], "?")); err == nil {
		named := values.Has("user")
		for _, key := range notPrivate {
			values.Del(key)
		}
		if named && k.user != "" {
			values.Set("user", k.user)
		}
		if k == postgres && (scheme == "postgres" || scheme == "postgresql") {
			values.Set("sslmode", "disable")
		}
		if len(values) > 0 {
			query = "?" + values.Encode()
		}
	}
	return fmt.Sprintf("%s://%s%s:%s%s%s", scheme, user, k.host, k.port, k.path, query)
}
