package mysql

import (
	"fmt"
	"math"
	"strconv"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/witness"
)

// Types of columns and parameters (MySQL Source Code Documentation, "Column Types").
const (
	typeTiny      = 1
	typeShort     = 2
	typeLong      = 3
	typeFloat     = 4
	typeDouble    = 5
	typeNull      = 6
	typeTimestamp = 7
	typeLongLong  = 8
	typeInt24     = 9
	typeDate      = 10
	typeTime      = 11
	typeDatetime  = 12
	typeYear      = 13
	typeBit       = 16
)

// Flags of columns.
const (
	flagUnsigned      = 1 << 5
	flagAutoIncrement = 1 << 9
)

// A column is the part of a column definition that is used here.
type column struct {
	name     string
	kind     byte
	unsigned bool
	decimals int  // digits of a time's fraction
	counts   bool // AUTO_INCREMENT
}

// definition reads a column definition (Protocol::ColumnDefinition41). Missing values are 0.
func definition(payload []byte) (c column) {
	r := reader{b: payload}
	for range 4 { // catalog, schema, table, table without its alias
		r.counted()
	}
	c.name = string(r.counted())
	r.counted() // column without its alias
	r.length()  // length of the rest
	r.number(2) // character set
	r.number(4) // width
	c.kind = byte(r.number(1))
	flags := r.number(2)
	c.decimals = int(r.number(1))
	c.unsigned, c.counts = flags&flagUnsigned != 0, flags&flagAutoIncrement != 0
	return c
}

// values returns the values of a row for people. From an incomplete row it returns the first values.
func (a *answer) values(payload []byte) []string {
	if a.binary {
		return binaryRow(a.columns, payload)
	}
	r := reader{b: payload}
	var all []string
	for range a.columns {
		if len(r.b) == 0 {
			break
		}
		if r.b[0] == 0xfb {
			r.number(1)
			all = append(all, null)
			continue
		}
		all = append(all, plain(r.counted()))
	}
	return all
}

const null = "NULL"

// binaryRow reads a row of a prepared statement (Binary Protocol Resultset Row).
func binaryRow(columns []column, payload []byte) []string {
	r := reader{b: payload}
	r.number(1)
	nulls := r.bytes(uint64(len(columns)+9) / 8)
	var all []string
	for i, c := range columns {
		if bit := i + 2; bit/8 < len(nulls) && nulls[bit/8]&(1<<(bit%8)) != 0 {
			all = append(all, null)
			continue
		}
		if len(r.b) == 0 {
			break
		}
		value, isText := r.value(c.kind, c.unsigned, c.decimals)
		if isText {
			value = plain([]byte(value))
		}
		all = append(all, value)
	}
	return all
}

// value reads a value of the binary protocol (Binary Protocol Value). isText reports whether the value
// is a byte string.
func (r *reader) value(kind byte, unsigned bool, decimals int) (value string, isText bool) {
	switch kind {
	case typeNull:
		return null, false
	case typeTiny:
		return integer(r.number(1), 8, unsigned), false
	case typeShort, typeYear:
		return integer(r.number(2), 16, unsigned), false
	case typeLong, typeInt24:
		return integer(r.number(4), 32, unsigned), false
	case typeLongLong:
		return integer(r.number(8), 64, unsigned), false
	case typeFloat:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(r.number(4)))), 'g', -1, 32), false
	case typeDouble:
		return strconv.FormatFloat(math.Float64frombits(r.number(8)), 'g', -1, 64), false
	case typeDate, typeDatetime, typeTimestamp:
		return date(r.bytes(r.number(1)), kind, decimals), false
	case typeTime:
		return clock(r.bytes(r.number(1)), decimals), false
	}
	return string(r.counted()), true
}

func integer(v uint64, bits int, unsigned bool) string {
	if unsigned {
		return strconv.FormatUint(v, 10)
	}
	shift := 64 - bits
	return strconv.FormatInt(int64(v<<shift)>>shift, 10)
}

// date reads a date with a time of day: 0, 4, 7 or 11 bytes.
func date(b []byte, kind byte, decimals int) string {
	r := reader{b: b}
	text := fmt.Sprintf("%04d-%02d-%02d", r.number(2), r.number(1), r.number(1))
	if kind == typeDate && len(r.b) == 0 {
		return text
	}
	text += fmt.Sprintf(" %02d:%02d:%02d", r.number(1), r.number(1), r.number(1))
	return text + fraction(r.number(4), decimals)
}

// clock reads a time: 0, 8 or 12 bytes.
func clock(b []byte, decimals int) string {
	r := reader{b: b}
	sign := ""
	if r.number(1) != 0 {
		sign = "-"
	}
	days := r.number(4)
	text := fmt.Sprintf("%s%02d:%02d:%02d", sign, days*24+r.number(1), r.number(1), r.number(1))
	return text + fraction(r.number(4), decimals)
}

// fraction formats the fraction of a second, with the column's number of digits.
func fraction(micros uint64, decimals int) string {
	if decimals < 1 || decimals > 6 {
		if micros == 0 {
			return ""
		}
		decimals = 6
	}
	return fmt.Sprintf(".%06d", micros)[:1+decimals]
}

// plain returns a value as text. Bytes that are not text become hexadecimal digits.
func plain(value []byte) string {
	const most = 4 * wire.LongestText
	text, readable := wire.Readable(string(value[:min(len(value), most)]), len(value) > most)
	if !readable {
		return fmt.Sprintf("0x%x", text)
	}
	return text
}

func named(columns []column, values []string) (all []witness.Cell) {
	for i, v := range values[:min(len(values), wire.LongestText+1)] {
		name := ""
		if i < len(columns) {
			name = columns[i].name
		}
		all = append(all, witness.Cell{Column: name, Value: v})
	}
	return all
}
