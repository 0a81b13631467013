package target

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/instance"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A strays detects a session lock that a buyer takes on one connection and releases on another, which does not hold it.
// In between, the program's own pool, or a pooler between program and server, may give the buyer another connection.
// Some poolers assign a connection only for a transaction. It is then free again before the buyer is answered, and no
// schedule lets another buyer move in between. So strays reports the lock when the buyer takes it.
type strays struct {
	taken  map[stray]*wire.Conn
	pooler func(*wire.Conn) string // returns the pooler that assigns the connection per transaction; "": none
	first  string                  // the first such lock, described for the user; "": none
}

// poolers are programs that share connections among their clients. lendsBriefly matches a configuration of pgcat or
// Odyssey that assigns a connection only for one transaction or statement (pgcat, "pool_mode"; Odyssey, "pool").
var (
	poolers      = []string{"pgbouncer", "pgcat", "odyssey"}
	lendsBriefly = regexp.MustCompile(`(?im)^[^;#\n]*\bpool(?:_mode)?[\s="]+(?:transaction|statement)\b`)
)

// poolerOf returns the pooler among the instance's processes that assigns connection c only for a transaction; "" if
// there is none.
func poolerOf(i *instance.Instance, c *wire.Conn) string {
	at := slices.IndexFunc(poolers, func(name string) bool {
		if !i.Up() {
			return false
		}
		settings := i.Program.Configuration(name)
		if name == "pgbouncer" {
			return lendsInPgBouncer(settings, c.Database, c.User)
		}
		return lendsBriefly.MatchString(settings)
	})
	if at < 0 {
		return ""
	}
	return poolers[at]
}

// ofEntry matches the options dbname and pool_mode of an entry in PgBouncer's sections [databases] and [users].
var ofEntry = regexp.MustCompile(`\b(dbname|pool_mode)\s*=\s*'?([^'\s]+)`)

// lendsInPgBouncer reports whether PgBouncer assigns the user's connections to the database only for one transaction or
// statement. Several entries of the settings may name one database. If their modes differ, the default applies
// (pgbouncer.org, "Configuration", pool_mode).
func lendsInPgBouncer(settings, database, user string) bool {
	section, byDefault, ofUser, fallback := "", "session", "", ""
	var ofDatabase []string // modes of the entries for this database; "": the default mode
	for line := range strings.Lines(settings) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[]")
		}
		name, text, isEntry := strings.Cut(line, "=")
		name, text = strings.Trim(name, " \"\t"), strings.TrimSpace(text)
		if !isEntry || strings.HasPrefix(line, ";") || strings.HasPrefix(line, "#") {
			continue
		}
		entry := map[string]string{"dbname": name}
		for _, m := range ofEntry.FindAllStringSubmatch(text, -1) {
			entry[m[1]] = m[2]
		}
		switch mode := entry["pool_mode"]; {
		case section == "pgbouncer" && name == "pool_mode":
			byDefault = text
		case section == "users" && name == user:
			ofUser = mode
		case section == "databases" && entry["dbname"] == database:
			ofDatabase = append(ofDatabase, mode)
		case section == "databases" && entry["dbname"] == "*":
			fallback = mode
		}
	}
	if ofDatabase == nil {
		ofDatabase = []string{fallback}
	}
	mode := ofDatabase[0]
	if slices.ContainsFunc(ofDatabase, func(other string) bool { return other != mode }) {
		mode = ""
	}
	mode = strings.ToLower(cmp.Or(ofUser, mode, byDefault))
	return mode != "session"
}

// A stray is a session lock of a buyer.
type stray struct {
	buyer int
	lock  string
}

var (
	// sessionLock matches a call that takes or releases a session lock; a group captures the lock's name.
	sessionLock = regexp.MustCompile(`(?i)\b(?:pg_(?:try_)?advisory_(lock|unlock)(?:_shared)?\s*\(((?:[^()]|\([^()]*\))*)\)|(get|release)_lock\s*\(\s*([^,)]*))`)
	// isRefused matches the answer to a call that took or released no lock.
	isRefused = regexp.MustCompile(`=(?:f|false|0|NULL)$`)
)

// answered records a command, with its answer as the user sees it.
func (s *strays) answered(o *gates.Op, answer string) {
	calls := sessionLock.FindAllStringSubmatch(o.Text, 2)
	if len(calls) != 1 || o.Answer.Failed {
		return
	}
	call, done := calls[0], !isRefused.MatchString(answer)
	lock := stray{o.Buyer, call[2] + call[4]}
	taker := s.taken[lock]
	switch verb := strings.ToLower(call[1] + call[3]); {
	case (verb == "lock" || verb == "get") && done:
		s.taken[lock] = o.Conn()
		if pooler := s.pooler(o.Conn()); pooler != "" && s.first == "" {
			s.first = naming.Short(o.Shown) + ", through " + pooler
		}
	case verb == "lock" || verb == "get":
	case done:
		delete(s.taken, lock)
	case taker != nil && taker != o.Conn() && s.first == "":
		s.first = naming.Short(o.Shown)
	}
}

// keeps reports whether the buyer holds a session lock on a connection other than this one.
func (s *strays) keeps(b *client.Buyer, other *wire.Conn) bool {
	for lock, c := range s.taken {
		if lock.buyer == b.ID && c != other {
			return true
		}
	}
	return false
}
