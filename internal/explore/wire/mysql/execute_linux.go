package mysql

import (
	"fmt"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// lastPrepared is MariaDB's number for the statement that was prepared last. With it, a program can use
// the statement before the server has sent the statement's own number.
const lastPrepared = 1<<32 - 1

// statement finds a prepared statement, with mu held. It returns nil if there is none.
func (s *state) statement(id uint32) *prepared {
	if one := s.prepared[id]; one != nil {
		return one
	}
	if id == lastPrepared {
		return s.last
	}
	return nil
}

func (s *state) execute(c *wire.Command, q *request, payload []byte) {
	q.answer.kind, q.answer.binary = results, true
	r := reader{b: payload[1:]}
	id := uint32(r.number(4))
	r.number(5) // the cursor's flags, and the number of iterations
	one := s.statement(id)
	if one == nil || r.short {
		c.Text, c.Gated, q.settles = fmt.Sprintf("EXECUTE statement %d", id), true, true
		return
	}
	q.executes = one
	s.means(c, q, s.says(one))
	values, err := one.values(r.b, s.long[id])
	delete(s.long, id) // the server forgets the values, too
	if err != nil {
		c.Text = one.said.Line + " (values that cannot be read)"
		return
	}
	c.Text, c.Whole = effect.Line(one.sql, effect.MySQL, values...), effect.Whole(one.sql, effect.MySQL, values...)
}

// fetch interprets STMT_FETCH: more rows of a cursor.
func (s *state) fetch(c *wire.Command, q *request, payload []byte) {
	q.answer.kind, q.settles = fetched, true
	r := reader{b: payload[1:]}
	id, rows := uint32(r.number(4)), r.number(4)
	c.Gated = true
	c.Text = fmt.Sprintf("FETCH %d rows", rows)
	if one := s.statement(id); one != nil {
		c.Text += " of " + one.said.Line
		q.fetches = one
		if one.said.Effect == schedule.Reads && !s.serializable {
			c.Effect = schedule.Reads
		}
	}
}

// longData interprets STMT_SEND_LONG_DATA: a part of a value, sent before EXECUTE.
func (s *state) longData(payload []byte) {
	r := reader{b: payload[1:]}
	id, place := uint32(r.number(4)), int(r.number(2))
	if r.short || s.statement(id) == nil {
		return
	}
	if s.long[id] == nil {
		s.long[id] = map[int][]byte{}
	}
	if had := s.long[id][place]; len(had) < kept {
		s.long[id][place] = append(had, r.b[:min(len(r.b), kept)]...)
	}
}

// values returns the parameters of an EXECUTE as readable text. `b` contains the bytes after the iteration count.
// values stores the types of the parameters, since a program sends them with the first EXECUTE only.
func (p *prepared) values(b []byte, long map[int][]byte) ([]string, error) {
	if p.params == 0 {
		return nil, nil
	}
	r := reader{b: b}
	nulls := r.bytes(uint64(p.params+7) / 8)
	if r.number(1) == 1 {
		p.types = append([]byte(nil), r.bytes(2*uint64(p.params))...)
	}
	if r.short || len(p.types) < 2*p.params {
		return nil, errShort
	}
	var all []string
	for i := range p.params {
		if nulls[i/8]&(1<<(i%8)) != 0 {
			all = append(all, null)
			continue
		}
		if sent, ok := long[i]; ok {
			all = append(all, effect.Quote(sent))
			continue
		}
		value, isText := r.value(p.types[2*i], p.types[2*i+1]&0x80 != 0, 0)
		if r.short {
			return nil, errShort
		}
		switch p.types[2*i] {
		case typeDate, typeDatetime, typeTimestamp, typeTime:
			value = "'" + value + "'"
		}
		if isText {
			value = effect.Quote([]byte(value))
		}
		all = append(all, value)
	}
	return all, nil
}
