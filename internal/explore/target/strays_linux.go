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

// A strays notices a lock of a session that its buyer takes on one connection and releases on another, which does
// not hold it. A pooler between program and server, or the program's own pool, lends such connections. A pooler that
// lends for a transaction frees the connection before the buyer has the answer, so no schedule has a move of another
// buyer in between. Then the lock counts when it is taken.
type strays struct {
	taken  map[stray]*wire.Conn
	pooler func(*wire.Conn) string // the pooler that lends this connection for a transaction; "": none does
	first  string                  // the first such release, for people; "": none
}

// poolers are processes that lend connections. lendsBriefly matches the configuration of pgcat or Odyssey if that lends
// them for a transaction or a statement (pgcat, "pool_mode"; Odyssey, "pool").
var (
	poolers      = []string{"pgbouncer", "pgcat", "odyssey"}
	lendsBriefly = regexp.MustCompile(`(?im)^[^;#\n]*\bpool(?:_mode)?[\s="]+(?:transaction|statement)\b`)
)

// poolerOf returns the pooler among a program's processes that lends a connection for a transaction; "" if there is
// none.
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

// ofEntry matches what an entry of PgBouncer's sections [databases] and [users] says about names and lending.
var ofEntry = regexp.MustCompile(`\b(dbname|pool_mode)\s*=\s*'?([^'\s]+)`)

// lendsInPgBouncer reports whether PgBouncer lends the connections of a user to a database for a transaction or a
// statement. The server knows the database's own name, which several entries may share. If their modes differ, the
// default counts (pgbouncer.org, "Configuration", pool_mode).
func lendsInPgBouncer(settings, database, user string) bool {
	section, byDefault, ofUser, fallback := "", "session", "", ""
	var ofDatabase []string // the modes of the entries that lead to it, "": the default
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

// A stray is a lock of a buyer.
type stray struct {
	buyer int
	lock  string
}

var (
	// sessionLock matches the calls that take or release a lock of the session, with what names the lock.
	sessionLock = regexp.MustCompile(`(?i)\b(?:pg_(?:try_)?advisory_(lock|unlock)(?:_shared)?\s*\(((?:[^()]|\([^()]*\))*)\)|(get|release)_lock\s*\(\s*([^,)]*))`)
	// isRefused matches the answer to such a call that did nothing.
	isRefused = regexp.MustCompile(`=(?:f|false|0|NULL)$`)
)

// answered records the answer to a command, as people see it.
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

// keeps reports whether the buyer has a lock on a connection other than this one.
func (s *strays) keeps(b *client.Buyer, other *wire.Conn) bool {
	for lock, c := range s.taken {
		if lock.buyer == b.ID && c != other {
			return true
		}
	}
	return false
}
