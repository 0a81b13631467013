package mysql

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Status flags of OK and EOF.
const (
	statusInTransaction = 1 << 0
	statusAutocommit    = 1 << 1
	statusMoreResults   = 1 << 3
	statusCursor        = 1 << 6
)

// Errors (MySQL 8.0 Error Message Reference, MariaDB Error Code Reference).
const (
	errorInterrupted = 1317
	errorLockWait    = 1205
)

// endsTransaction lists the errors after which the server has rolled back the whole transaction: record
// changed since last read, error during commit, deadlock, and XA errors.
var endsTransaction = map[int]bool{1020: true, 1180: true, 1213: true, 1402: true, 1613: true, 1614: true}

type kind int

const (
	results       kind = iota // OK, ERR, or columns and rows; once or several times
	single                    // one packet: OK, EOF or ERR
	message                   // one packet: a text or ERR
	definitions               // columns without rows: FIELD_LIST
	fetched                   // rows without columns: STMT_FETCH
	preparation               // a number, and two lists of columns
	authenticates             // one packet; only the last packet of a login is an OK or an ERR
)

type phase int

const (
	begins phase = iota
	inColumns
	inRows
)

// An answer follows the packets that answer one command. It needs no locks.
type answer struct {
	kind   kind
	binary bool // rows belong to a prepared statement

	phase   phase
	expects int // number of column lists to come in the answer to a STMT_PREPARE
	columns []column
	many    uint64 // number of columns of this result

	stated   bool // the server has sent its status
	status   uint16
	complete bool // an OK has come
	sets     int  // number of results with columns
	oks      int
	rows     int // number of rows in all results
	found    int // number of rows in this result
	shown    wire.Shown
	affected uint64
	made     []string
	counted  []string // values of AUTO_INCREMENT columns
	code     int      // error number
	words    string
	id       uint32 // number of a prepared statement
	params   int
	firstRow []string // values of the only row so far
}

// feed adds a packet and reports whether it ends the answer. The slice `payload` may be truncated;
// `size` is its full length in bytes.
func (a *answer) feed(payload []byte, size int) (ends bool, err error) {
	if len(payload) == 0 && a.phase != inRows {
		return false, errShort
	}
	if isError(payload) {
		a.fails(payload)
		return true, nil
	}
	switch a.phase {
	case inColumns:
		return a.column(payload, size)
	case inRows:
		return a.row(payload, size)
	}
	return a.begin(payload, size)
}

func (a *answer) begin(payload []byte, size int) (ends bool, err error) {
	switch a.kind {
	case message:
		a.shown.Add(string(payload[:min(len(payload), wire.LongestText)]))
		return true, nil
	case definitions:
		a.phase = inColumns
		return a.column(payload, size)
	case fetched:
		a.phase, a.binary, a.sets = inRows, true, 1
		return a.row(payload, size)
	case preparation:
		return a.prepares(payload)
	case authenticates:
		if payload[0] == 0 {
			return true, a.ok(payload)
		}
		return !fastAuthentication(payload), nil // the program sends the next packet
	case single:
		if payload[0] == 0 {
			return true, a.ok(payload)
		}
		if isEOF(payload, size) {
			a.state(payload)
		}
		return true, nil
	}
	switch {
	case payload[0] == 0:
		err = a.ok(payload)
		return !a.more(), err
	case payload[0] == 0xfb:
		return false, &wire.Refused{Why: "the server wants a file of LOAD DATA LOCAL, which the gate does not hand on; use LOAD DATA or INSERT for the test"}
	case isEOF(payload, size):
		a.state(payload)
		return true, nil
	}
	r := reader{b: payload}
	a.many = r.length()
	if r.short || a.many == 0 || len(r.b) > 0 || a.many > 1<<16 {
		return false, errors.New("the server's answer is not one of MySQL's protocol")
	}
	a.phase, a.columns, a.found = inColumns, nil, 0
	a.sets++
	return false, nil
}

func (a *answer) column(payload []byte, size int) (ends bool, err error) {
	if !isEOF(payload, size) {
		if len(a.columns) < 1<<16 {
			a.columns = append(a.columns, definition(payload))
		}
		return false, nil
	}
	if a.kind == preparation {
		a.expects--
		a.columns = nil
		return a.expects == 0, nil
	}
	a.state(payload)
	if a.kind == definitions {
		return true, nil
	}
	if uint64(len(a.columns)) != a.many {
		return false, errors.New("the server's answer has not the columns that it announced")
	}
	if a.status&statusCursor != 0 {
		a.shown.Add("cursor")
		a.found = 1 // the cursor may have rows
		return true, nil
	}
	a.phase = inRows
	return false, nil
}

func (a *answer) row(payload []byte, size int) (ends bool, err error) {
	if isEOF(payload, size) {
		a.state(payload)
		a.phase = begins
		if a.found == 0 {
			a.shown.Add("no row")
		}
		return a.kind == fetched || !a.more(), nil
	}
	a.found++
	a.rows++
	if a.shown.Full() && a.rows > 1 {
		return false, nil
	}
	values := a.values(payload)
	if a.rows == 1 {
		a.firstRow = values
	}
	a.shown.Row(named(a.columns, values))
	for i, c := range a.columns {
		if c.counts && i < len(values) && len(a.counted) < wire.LongestText {
			a.counted = append(a.counted, values[i])
		}
	}
	return false, nil
}

// prepares reads the first packet of the answer to STMT_PREPARE.
func (a *answer) prepares(payload []byte) (ends bool, err error) {
	r := reader{b: payload[1:]}
	a.id = uint32(r.number(4))
	columns := r.number(2)
	a.params = int(r.number(2))
	if r.short || payload[0] != 0 {
		return false, errShort
	}
	if a.params > 0 {
		a.expects++
	}
	if columns > 0 {
		a.expects++
	}
	a.phase = inColumns
	return a.expects == 0, nil
}

func (a *answer) ok(payload []byte) error {
	r := reader{b: payload[1:]}
	changed, id := r.length(), r.length()
	a.status = uint16(r.number(2))
	if r.short {
		return errShort
	}
	a.stated, a.complete = true, true
	a.oks++
	a.affected += changed
	if id != 0 {
		a.made = append(a.made, strconv.FormatUint(id, 10))
	}
	return nil
}

func (a *answer) state(payload []byte) {
	if len(payload) >= 5 {
		a.stated, a.status = true, uint16(payload[3])|uint16(payload[4])<<8
	}
}

// fails reads an ERR packet: a number and, after a #, five characters of SQLSTATE.
func (a *answer) fails(payload []byte) {
	r := reader{b: payload[1:]}
	a.code = int(r.number(2))
	if len(r.b) > 5 && r.b[0] == '#' {
		r.b = r.b[6:]
	}
	a.words = string(r.b)
}

func (a *answer) more() bool   { return a.status&statusMoreResults != 0 }
func (a *answer) failed() bool { return a.code != 0 }

// refusal returns the server's error in answer to a command that the session, not the program, has
// sent. It returns nil if there is none.
func (a *answer) refusal() error {
	if !a.failed() {
		return nil
	}
	return fmt.Errorf("the server does not let %s: %s", setWait, a.text(""))
}

// text returns the answer in one short line for people.
func (a *answer) text(verb string) string { return wire.Shorten(a.whole(verb)) }

// whole returns the same line as the method `text`, without a limit to its length.
func (a *answer) whole(verb string) string {
	var parts []string
	if a.oks > 0 && (a.sets == 0 || a.affected > 0) {
		if a.affected > 0 || counts[verb] {
			parts = append(parts, fmt.Sprintf("%d changed", a.affected))
		} else {
			parts = append(parts, "ok")
		}
	}
	if a.failed() {
		parts = append(parts, fmt.Sprintf("error %d: %s", a.code, a.words))
	}
	return a.shown.Whole(parts...)
}

// counts lists the verbs for which the OK packet states the number of changed rows.
var counts = map[string]bool{"INSERT": true, "UPDATE": true, "DELETE": true, "REPLACE": true, "LOAD": true, "WITH": true}

func (a *answer) fill(c *wire.Command, verb string) {
	out := &c.Answer
	out.Text, out.Whole, out.Made, out.Rows = a.text(verb), a.whole(verb), a.made, a.shown.Rows()
	out.Unseen = max(0, a.rows-len(out.Rows))
	if verb == "INSERT" || verb == "REPLACE" {
		out.Made = append(out.Made, a.counted...) // MariaDB's RETURNING
	}
	switch {
	case a.failed():
		out.Failed = true
		// If the text has several statements, those before the failed one may have changed rows.
		out.Changed = endsTransaction[a.code] || a.affected > 0 || a.sets > 0 && c.Effect == schedule.Writes
		return
	case c.Named && len(a.firstRow) == 1:
		out.Failed = a.firstRow[0] != "1"
		out.Changed = !out.Failed
		return
	case a.sets > 0 && a.oks == 0:
		out.Failed = a.rows == 0 && a.found == 0
	case counts[verb]:
		out.Failed = a.affected == 0 && a.sets == 0
	}
	out.Changed = c.Gated && c.Effect == schedule.Writes && !(counts[verb] && a.affected == 0 && a.sets == 0 && a.oks == 1)
}

// isError and isEOF recognize a packet in any phase.
func isError(payload []byte) bool { return len(payload) > 2 && payload[0] == 0xff }

func isEOF(payload []byte, size int) bool {
	return len(payload) > 0 && payload[0] == 0xfe && size < 9
}

func appendError(b []byte, sequence byte, code int, state, message string) []byte {
	payload := append([]byte{0xff, byte(code), byte(code >> 8), '#'}, state...)
	return appendPacket(b, sequence, append(payload, message...))
}
