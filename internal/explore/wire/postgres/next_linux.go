package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// firstOfUsers is the lowest OID of a function that a user has created (transam.h,
// FirstNormalObjectId).
const firstOfUsers = 16384

// longestText is the maximum length of the shown text of several statements, in bytes.
const longestText = 2000

// A batch holds the messages that a program has sent since its last command.
type batch struct {
	call
	raw      []byte
	data     int64    // number of bytes for COPY
	copied   bool     // the batch has bytes for COPY
	ended    bool     // the bytes for COPY have ended
	lines    []string // texts of the executed statements
	length   int      // total length of lines
	others   []string // texts of all other messages
	says     []said   // analyses of the executed statements
	parses   []said   // analyses of the prepared or bound statements
	executes int
	piece    bool   // the method `pipeline` has divided a batch into several commands, and this is one of them
	parts    []part // the executed statements of the extended protocol
}

func newBatch() *batch { return &batch{call: call{command: &wire.Command{}}} }

// Next implements wire.Session. It reads up to the message that makes the server answer.
func (s *Session) Next() (*wire.Command, error) {
	if len(s.parts) > 0 {
		b := s.parts[0]
		s.parts = s.parts[1:]
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finish(b)
		return b.command, nil
	}
	b := newBatch()
	for {
		f, err := readFrame(s.program.R)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF // the program hung up within a message, which the server would ignore
		}
		if err != nil {
			return nil, err
		}
		b.raw = append(b.raw, f...)
		s.mu.Lock()
		ends := s.take(b, f)
		if ends {
			s.parts = s.pipeline(b)
			b, s.parts = s.parts[0], s.parts[1:]
			s.finish(b)
		}
		s.mu.Unlock()
		if ends {
			return b.command, nil
		}
	}
}

// take adds a message to a batch. It reports whether that message ends the batch.
func (s *state) take(b *batch, f frame) (ends bool) {
	data := f.kind() == 'd' || f.kind() == 'c' || f.kind() == 'f'
	switch {
	case b.ended:
	case b.copied, s.copying != noCopy, data && (len(s.calls) > 0 || len(b.expects) > 0):
		return s.takeCopy(b, f)
	case data: // the server discards the remaining data of a COPY that has failed
		b.command.Silent = true
		b.others = append(b.others, "COPY data too late")
		return true
	}
	switch f.kind() {
	case 'P', 'B', 'D', 'E', 'C':
		b.extended = true
		s.takeExtended(b, f)
		return false
	case 'S':
		b.extended, b.synced = true, true
		b.expects = append(b.expects, expected{kind: 'S'})
	case 'H':
		b.extended = true
		b.command.Silent = len(b.expects) == 0
	case 'Q':
		s.takeQuery(b, f)
	case 'F':
		b.synced = true
		what, name := said{}, "FUNCTION CALL"
		if len(f.body()) >= 4 {
			id := binary.BigEndian.Uint32(f.body())
			name = fmt.Sprintf("FUNCTION CALL %d", id)
			if id >= firstOfUsers {
				what.Effect, what.Alters, what.Inside = schedule.Writes, true, effect.Divided
			}
		}
		b.executed(what, name, nil)
	case 'X':
		b.command.Silent = true
		b.others = append(b.others, "TERMINATE")
	default:
		b.synced = true
		b.executed(said{}, fmt.Sprintf("message %q", f.kind()), nil)
	}
	return true
}

// takeCopy handles the data of a COPY. During a COPY, the server ignores Sync and Flush (PostgreSQL 15
// manual, 55.2.6). Some programs (pgx) send the data before they know whether the server accepts it.
func (s *state) takeCopy(b *batch, f frame) (ends bool) {
	if !b.copied {
		b.copied = true
		b.extended = s.copying == extendedCopy || s.copying == noCopy && (b.extended || len(s.calls) > 0 && s.calls[len(s.calls)-1].extended)
	}
	failed := s.copying == noCopy && len(s.calls) == 0 && len(b.expects) == 0
	switch kind := f.kind(); {
	case kind == 'd':
		b.data += int64(len(f.body()))
		return false
	case kind == 'c' || kind == 'f':
		b.ended = true
		if b.extended {
			b.expects = append(b.expects, expected{kind: 'c'})
			return false
		}
		b.synced, b.onlyData = true, true
		return true
	case (kind == 'S' || kind == 'H') && !failed:
		return false
	case kind == 'X':
		b.command.Silent = true
		return true
	case failed:
		b.ended, b.extended = true, false
		return s.take(b, f)
	}
	b.synced, b.extended = true, false // the server refuses this message
	return true
}

// finishCopy decides which COPY the data belongs to.
func (s *state) finishCopy(b *batch) {
	switch {
	case s.copying != noCopy:
		s.copying = noCopy
	case len(b.expects) > 0 && b.expects[0].kind != 'c' && b.expects[0].kind != 'S': // the COPY is in the same batch
	case len(s.calls) > 0:
		b.awaits = true
	default:
		b.orphaned()
	}
}

// orphaned handles the data of a COPY that has failed, which the server discards.
func (c *call) orphaned() {
	c.awaits = false
	c.expects = slices.DeleteFunc(c.expects, func(e expected) bool { return e.kind == 'c' })
	c.command.Silent = c.command.Silent || c.onlyData || c.extended && len(c.expects) == 0
}

func (s *state) takeQuery(b *batch, f frame) {
	b.synced = true
	var m pgproto3.Query
	_ = m.Decode(f.body())
	what := says(m.String, s.known())
	b.executed(what, what.Line, effect.Whole(m.String, effect.Postgres))
	b.result.says = what
}

// takeExtended handles a message of the extended protocol. If it is unreadable, the server refuses it.
func (s *state) takeExtended(b *batch, f frame) {
	e := expected{kind: f.kind()}
	var line string
	var whole func() string
	switch f.kind() {
	case 'P':
		var m pgproto3.Parse
		if m.Decode(f.body()) != nil {
			break
		}
		e.name, e.before = m.Name, s.statements[m.Name]
		e.statement = &prepared{sql: m.Query, says: says(m.Query, s.known()), by: s.known(), types: m.ParameterOIDs}
		s.statements[m.Name] = e.statement
		b.parses = append(b.parses, e.statement.says)
		b.others = append(b.others, "PREPARE "+e.statement.says.Line)
	case 'B':
		var m pgproto3.Bind
		if m.Decode(f.body()) != nil {
			break
		}
		p := &portal{statement: s.statements[m.PreparedStatement], formats: m.ResultFormatCodes}
		if p.statement == nil { // prepared in SQL
			p.line = "EXECUTE " + m.PreparedStatement
			p.statement = &prepared{says: said{}}
		} else {
			values := inlined(&m, p.statement.types)
			p.line = effect.Line(p.statement.sql, effect.Postgres, values...)
			p.whole = effect.Whole(p.statement.sql, effect.Postgres, values...)
		}
		s.portals[m.DestinationPortal] = p
		b.parses = append(b.parses, p.statement.says)
		b.others = append(b.others, "BIND "+p.line)
	case 'D':
		var m pgproto3.Describe
		if m.Decode(f.body()) != nil {
			break
		}
		if m.ObjectType == 'S' {
			e.statement = s.statements[m.Name]
		} else {
			e.portal = s.portals[m.Name]
		}
		if len(b.parses) == 0 {
			b.others = append(b.others, strings.TrimSpace("DESCRIBE "+m.Name))
		}
	case 'E':
		var m pgproto3.Execute
		what := said{}
		line = "EXECUTE"
		if m.Decode(f.body()) == nil {
			if e.portal = s.portals[m.Portal]; e.portal != nil {
				e.statement = e.portal.statement
				what, line, whole = s.said(e.statement), e.portal.line, e.portal.whole
			} else {
				line = strings.TrimSpace("FETCH FROM " + m.Portal) // a cursor that was declared in SQL
			}
		}
		b.executed(what, line, whole)
	case 'C':
		var m pgproto3.Close
		if m.Decode(f.body()) != nil {
			break
		}
		if m.ObjectType == 'S' {
			delete(s.statements, m.Name)
		} else {
			delete(s.portals, m.Name)
		}
		b.others = append(b.others, strings.TrimSpace("CLOSE "+m.Name))
	}
	b.expects = append(b.expects, e)
	if f.kind() == 'E' {
		b.parts = append(b.parts, part{says: b.says[len(b.says)-1], line: line, whole: whole, raw: len(b.raw), expects: len(b.expects)})
	}
}

// executed adds an executed statement. The function `whole` returns its complete text; nil if `line` is complete.
func (b *batch) executed(what said, line string, whole func() string) {
	b.executes++
	b.says = append(b.says, what)
	if b.executes == 1 { // with several statements, Text shows the beginning of each, and Whole stays nil
		b.command.Whole = whole
	} else {
		b.command.Whole = nil
	}
	if b.length < longestText {
		b.lines = append(b.lines, line)
		b.length += len(line) + 2
	}
}

func (s *state) finish(b *batch) {
	c := b.command
	c.Raw = b.raw
	c.Text = b.text()
	c.Effect = schedule.Local
	b.opened = s.implicit
	if b.executes == 1 && b.synced && !b.copied && !s.implicit && len(s.calls) == 0 {
		c.InTransaction, c.OwnTransaction = s.status == 'T' || s.status == 'E', s.status == 'I'
	}
	if b.copied {
		s.finishCopy(b)
	}
	syncs := b.extended && b.synced
	switch {
	case s.skips && !syncs:
		c.Silent = true
	case s.skips:
		s.skips = false
	case c.Silent:
	case b.executes > 0:
		alone := len(s.calls) == 0 && b.synced && b.executes == 1 && !b.copied
		c.Autocommits = alone && s.status == 'I' && !s.implicit && b.says[0].Writes()
		c.Overlaps = b.says[0].Scans < 2 && (c.Autocommits || (b.piece || alone && s.status == 'T') && b.says[0].Alone)
		s.gate(c, b.says)
	case len(b.parses) > 0:
		// Analysis and planning take the transaction's snapshot (postgres.c, exec_parse_message, exec_bind_message).
		c.Effect = schedule.Reads
		for _, one := range b.parses {
			c.Gated = c.Gated || s.snapshots && !one.utility() && s.inTransaction()
		}
	case b.copied:
		c.Effect = schedule.Writes // the gate has already held the COPY statement
	case len(b.expects) > 0 && !(syncs && len(b.expects) == 1):
		c.Effect = schedule.Reads
	}
	if syncs && s.implicit {
		c.Ends, c.Gated = true, true
		c.Effect = schedule.Writes
	}
	switch {
	case syncs:
		s.implicit = false
	case b.extended && !c.Silent && c.Effect == schedule.Writes:
		s.implicit = s.implicit || s.status == 'I'
	}
	c.Snapshots = s.snapshots || s.isolated
	if !c.Silent {
		s.calls = append(s.calls, &b.call)
	}
}

func (b *batch) text() string {
	lines := b.lines
	if b.copied {
		lines = append([]string{fmt.Sprintf("COPY data (%d bytes)", b.data)}, lines...)
	}
	more := b.executes - len(b.lines)
	if len(lines) == 0 {
		lines = b.others[:min(len(b.others), 10)]
		more = len(b.others) - len(lines)
	}
	switch {
	case len(lines) > 0:
	case b.command.Silent:
		return "FLUSH"
	default:
		return "SYNC"
	}
	line := strings.Join(lines, "; ")
	if more > 0 {
		line += fmt.Sprintf("; ... (%d more)", more)
	}
	return line
}
