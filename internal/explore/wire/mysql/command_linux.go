package mysql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Commands (MySQL Source Code Documentation, "Command Phase"; MariaDB's bulk execution).
const (
	comQuit         = 0x01
	comInitDB       = 0x02
	comQuery        = 0x03
	comFieldList    = 0x04
	comStatistics   = 0x09
	comProcessInfo  = 0x0a
	comDebug        = 0x0d
	comPing         = 0x0e
	comChangeUser   = 0x11
	comBinlogDump   = 0x12
	comTableDump    = 0x13
	comPrepare      = 0x16
	comExecute      = 0x17
	comLongData     = 0x18
	comClose        = 0x19
	comReset        = 0x1a
	comSetOption    = 0x1b
	comFetch        = 0x1c
	comBinlogGTID   = 0x1e
	comResetSession = 0x1f
	comBulkExecute  = 0xfa
)

// passing maps the commands that touch no data to their names. Such a command does not wait at the gate.
var passing = map[byte]struct {
	name string
	kind kind
}{
	comInitDB:     {"USE", single},
	comFieldList:  {"FIELD LIST", definitions},
	comStatistics: {"STATISTICS", message},
	comDebug:      {"DEBUG", single},
	comPing:       {"PING", single},
	comReset:      {"RESET STATEMENT", single},
	comSetOption:  {"SET OPTION", single},
}

// A said is the analysis of one statement's text.
type said struct {
	effect.Statement
	weakens    bool // after it, a write possibly does not lock the rows that it reads
	isolates   bool // it sets an isolation level
	lasts      bool // the level applies to all later transactions
	holds      bool // it may leave locks that survive the transaction
	setsWait   bool
	serializes bool
}

// gated reports whether the statement waits at the gate even if no transaction is open.
func (s said) gated() bool { return s.Waits(false, false) }

// known returns the catalog of the database's tables and routines; nil if it is unknown.
func (s *state) known() *effect.Catalog {
	if s.catalog == nil {
		return nil
	}
	return s.catalog()
}

// says returns the analysis of a prepared statement. After a change of the catalog, it analyses the
// text again.
func (s *state) says(p *prepared) said {
	if c := s.known(); p.by != c {
		p.said, p.by = says(p.sql, c), c
	}
	return p.said
}

func says(sql string, c *effect.Catalog) said {
	s := said{Statement: effect.With(c, sql, effect.MySQL)}
	if s.Effect != schedule.Reads || !s.gated() {
		lower := strings.ToLower(sql)
		s.setsWait = strings.Contains(lower, "lock_wait_timeout") && s.Verb != "SELECT" && s.Verb != "SHOW"
		s.serializes = strings.Contains(lower, "serializable")
	}
	s.weakens = s.Verb == "SET" && readsUnlocked.MatchString(sql)
	s.isolates = s.Verb == "SET" && isolation.MatchString(sql)
	s.lasts = sessionIsolation.MatchString(sql)
	// The effects of a procedure, or of a statement that another statement executes, are unknown.
	switch s.Verb {
	case "CALL", "EXECUTE", "LOCK", "FLUSH", "BACKUP", "":
		s.holds = true
	}
	s.holds = s.holds || s.NamedLock
	return s
}

// readsUnlocked matches the isolation levels at which InnoDB does not lock the rows that a writing
// statement reads (MySQL 8.0 Reference Manual, 17.7.3).
var readsUnlocked = regexp.MustCompile(`(?i)\bREAD[-\s]+(?:UN)?COMMITTED\b`)

// isolation matches a statement about an isolation level. sessionIsolation matches a statement that
// only sets the level of the connection.
var (
	isolation        = regexp.MustCompile(`(?i)isolation`)
	sessionIsolation = regexp.MustCompile(`(?i)^\s*SET\s+SESSION\s+TRANSACTION\s+ISOLATION\s+LEVEL\s+[A-Z\s]+$`)
)

// command interprets a packet of the program, with mu held.
func (s *state) command(raw, payload []byte) (*wire.Command, *request, error) {
	c := &wire.Command{Raw: raw}
	q := &request{answer: answer{kind: single}}
	if raw[3] != 0 && s.authenticating {
		// The program answers the server's request for a password or another method. The packet of an
		// empty password is empty.
		c.Text, c.Effect = "LOGIN", schedule.Local
		q.answer.kind, q.resets = authenticates, true
		return c, q, nil
	}
	if len(payload) == 0 {
		c.Text, c.Gated = "an empty packet", true
		return c, q, nil
	}
	if p, ok := passing[payload[0]]; ok {
		c.Text, c.Effect, q.answer.kind = p.name, schedule.Local, p.kind
		if payload[0] == comInitDB {
			c.Text += " " + effect.OneLine(string(payload[1:]))
		}
		return c, q, nil
	}
	switch payload[0] {
	case comQuery:
		s.query(c, q, string(payload[1:]))
	case comProcessInfo:
		c.Text, c.Effect, q.answer.kind = "SHOW PROCESSLIST", schedule.Local, results
	case comChangeUser, comResetSession:
		s.reset(c, q, payload)
	case comPrepare:
		one := &prepared{sql: string(payload[1:]), by: s.known()}
		one.said = says(one.sql, one.by)
		one.params = effect.Placeholders(one.sql, effect.MySQL)
		s.last = one
		c.Text, c.Effect = "PREPARE "+one.said.Line, schedule.Local
		q.answer.kind, q.prepares = preparation, one
	case comExecute:
		s.execute(c, q, payload)
	case comFetch:
		s.fetch(c, q, payload)
	case comLongData:
		c.Text, c.Effect, c.Silent = "LONG DATA", schedule.Local, true
		s.longData(payload)
	case comClose:
		c.Text, c.Effect, c.Silent = "CLOSE STATEMENT", schedule.Local, true
		r := reader{b: payload[1:]}
		id := uint32(r.number(4))
		delete(s.prepared, id)
		delete(s.long, id)
	case comBulkExecute:
		c.Text, c.Gated, c.Compound, c.Alters, q.answer.kind = "BULK EXECUTE", true, true, true, results // the server executes it once per row
	case comBinlogDump, comTableDump, comBinlogGTID:
		return nil, nil, &wire.Refused{Why: "the program reads the binary log of mysql, which cannot be explored; switch its change feed off for the test"}
	default:
		c.Text, c.Gated = fmt.Sprintf("command %#x", payload[0]), true
	}
	return c, q, nil
}

// query interprets a statement that was sent as text, with mu held.
func (s *state) query(c *wire.Command, q *request, sql string) {
	what := says(sql, s.known())
	c.Text, c.Whole = what.Line, effect.Whole(sql, effect.MySQL)
	q.answer.kind = results
	s.means(c, q, what)
}

// means combines the effects of a statement with the state of the connection.
func (s *state) means(c *wire.Command, q *request, what said) {
	c.Effect, c.Gated, c.Named = what.Effect, what.gated(), what.NamedLock
	if what.NamedLock {
		c.Limit = lockLimit(c.Text)
	}
	c.Ends, c.Alters, c.Hidden = what.Ends, what.Alters, what.Runs
	s.weak = s.weak || what.weakens
	c.Compound = what.Compound || what.Skews && s.weak // unless s.weak is true, all reads use the transaction's snapshot
	if what.isolates {
		s.unlocks = what.weakens && what.lasts
	}
	c.Divided = what.Inside == effect.Divided || what.Inside == effect.Lockable && s.weak || what.TornInside || what.Torn && s.autocommit && !s.open
	c.Within = s.mayBeOpen() || !s.autocommit
	alone := s.unsettled == 0                                                                             // the state of the transaction is known
	c.Autocommits = alone && s.autocommit && !s.open && !s.tables && what.Writes() && what.Verb != "CALL" // a CALL commits each statement of its procedure
	// In a function that a SELECT calls, a statement does not lock the rows that it only reads.
	unlocks := s.unlocks || what.Runs && (what.Verb == "SELECT" || what.Verb == "CALL")
	c.Overlaps = unlocks && what.Scans < 2 && !what.Controls && (c.Autocommits || alone && s.open && what.Alone)
	s.locksTables(what)
	q.verb, q.setsWait = what.Verb, what.setsWait
	s.serializable = s.serializable || what.serializes
	s.holds = s.holds || what.holds
	begins := what.Effect == schedule.Local && (what.Verb == "BEGIN" || what.Verb == "START") || what.Verb == "START" && what.Effect == schedule.Reads
	if begins || what.Effect == schedule.Local && what.Ends { // the second case is SET autocommit
		c.Ends = s.open
		if s.mayBeOpen() { // the statement commits the open transaction
			c.Effect = schedule.Writes
		}
	}
	if c.Effect == schedule.Reads && s.serializable {
		c.Effect = schedule.Writes // a SELECT locks the rows that it reads
	}
	q.settles = c.Gated
}

// mayBeOpen reports whether a transaction may be open, with mu held.
func (s *state) mayBeOpen() bool { return s.open || s.unsettled > 0 }

// reset interprets CHANGE_USER and RESET_CONNECTION, which roll the transaction back and release locks.
// CHANGE_USER may start a new login. During that login, each packet of the program counts as a command,
// and the server's next packet is its answer.
func (s *state) reset(c *wire.Command, q *request, payload []byte) {
	q.resets = true
	c.Effect, c.Gated, c.Ends = schedule.Local, s.mayBeOpen() || s.holds, s.open
	if c.Gated {
		c.Effect = schedule.Writes
	}
	c.Text = "RESET CONNECTION"
	if payload[0] == comChangeUser {
		r := reader{b: payload[1:]}
		c.Text = "CHANGE USER " + effect.OneLine(string(r.terminated()))
		q.answer.kind = authenticates
		s.authenticating = true
	}
}

// lockLimit returns the time-out of a GET_LOCK, as wire.Command.Limit defines it. A negative time-out
// means no limit (MariaDB Knowledge Base, GET_LOCK). If the time-out is computed, lockLimit returns 0.
func lockLimit(line string) time.Duration {
	m := lockSeconds.FindStringSubmatch(line)
	if m == nil {
		return 0
	}
	seconds, err := strconv.ParseFloat(m[1], 64)
	switch {
	case err != nil:
		return 0
	case seconds < 0:
		return wire.Endless
	}
	return time.Duration(min(seconds, longestLock.Seconds()) * float64(time.Second))
}

// longestLock replaces a time-out that does not fit into a Duration.
const longestLock = 100 * 365 * 24 * time.Hour

var lockSeconds = regexp.MustCompile(`(?i)\bGET_LOCK\s*\([^)]*,\s*'?(-?[0-9]+(?:\.[0-9]*)?)'?\s*\)`)
