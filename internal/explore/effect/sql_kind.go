package effect

import (
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

func (r reading) ends() bool {
	for _, t := range r.statements() {
		second := ""
		if len(t) > 1 {
			second = strings.ToUpper(t[1].text)
		}
		switch first(t) {
		case "COMMIT":
			if second != "PREPARED" {
				return true
			}
		case "ROLLBACK":
			if second == "TO" || second == "PREPARED" || second == "WORK" && len(t) > 2 && t[2].is("TO") ||
				second == "TRANSACTION" && len(t) > 2 && t[2].is("TO") {
				continue
			}
			return true
		case "END", "ABORT":
			if r.dialect == Postgres {
				return true
			}
		case "PREPARE":
			if r.dialect == Postgres && second == "TRANSACTION" {
				return true
			}
		case "XA":
			if second == "COMMIT" || second == "ROLLBACK" || second == "PREPARE" {
				return true
			}
		case "CREATE", "DROP":
			if r.dialect == MySQL && second != "TEMPORARY" {
				return true
			}
		case "ALTER", "TRUNCATE", "RENAME", "GRANT", "REVOKE", "LOCK", "UNLOCK", "FLUSH", "OPTIMIZE", "REPAIR", "ANALYZE", "INSTALL", "UNINSTALL":
			if r.dialect == MySQL {
				return true
			}
		case "SET":
			if r.dialect == MySQL && setsAutocommit(t) {
				return true
			}
		}
	}
	return false
}

func setsAutocommit(t []token) bool {
	return slices.ContainsFunc(t, func(one token) bool { return strings.EqualFold(strings.Trim(one.text, "`"), "autocommit") })
}

// alters returns Statement.Alters of one statement. It returns true for a plain SELECT, which may call
// a function that changes rows. It returns false for a SELECT that locks rows or asks for a named lock.
func (d Dialect) alters(t []token) bool {
	switch first(t) {
	case "COMMIT", "ROLLBACK", "END", "ABORT", "SAVEPOINT", "RELEASE", "SET", "LOCK", "UNLOCK", "LISTEN", "UNLISTEN", "NOTIFY", "DISCARD":
		return false
	case "SELECT", "WITH", "(":
		locking := func(one token) bool { return one.is("FOR") || one.is("LOCK") }
		return !slices.ContainsFunc(t, locking) && !(reading{tokens: t, dialect: d}).namedLock() || first(t) == "WITH"
	}
	return true
}

func (r reading) namedLock() bool {
	for i := 1; i < len(r.tokens); i++ {
		if r.tokens[i].text != "(" {
			continue
		}
		switch name := strings.ToLower(r.tokens[i-1].text); {
		case r.dialect == MySQL && name == "get_lock":
			return true
		case r.dialect == Postgres && strings.HasPrefix(name, "pg_advisory_") && strings.Contains(name, "lock") && !strings.Contains(name, "unlock"):
			return true
		}
	}
	return false
}

func (r reading) resets() bool {
	all := r.statements()
	return r.dialect == Postgres && !r.odd && len(all) > 0 && !slices.ContainsFunc(all, func(t []token) bool {
		switch text := strings.Join(words(t), " "); text {
		case "SELECT PG_ADVISORY_UNLOCK_ALL ( )", "CLOSE ALL", "UNLISTEN *", "RESET ALL", "DISCARD ALL", "DISCARD TEMP", "DISCARD TEMPORARY", "DISCARD PLANS", "DISCARD SEQUENCES",
			"DEALLOCATE ALL", "SET SESSION AUTHORIZATION DEFAULT":
			return false
		}
		return true
	})
}

func (r reading) compound() bool {
	steps := 0
	for _, t := range r.statements() {
		effect, passes := reading{tokens: t, dialect: r.dialect}.effect()
		switch first(t) {
		case "CALL":
			return true
		case "DO":
			if r.dialect == Postgres {
				return true
			}
		case "BEGIN":
			if effect != schedule.Local {
				return true
			}
		}
		if effect != schedule.Local && passes != looking {
			steps++
		}
	}
	return steps > 1
}
