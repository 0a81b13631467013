package postgres

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oversell/oversell/internal/explore/effect"
)

// longestValue is the number of bytes of a value that are used.
const longestValue = 1000

const null = "NULL"

// inlined returns the values of a Bind as they would appear in the statement.
func inlined(bind *pgproto3.Bind, types []uint32) (values []string) {
	const most = 1000
	for i, v := range bind.Parameters[:min(len(bind.Parameters), most)] {
		var oid uint32
		if i < len(types) {
			oid = types[i]
		}
		values = append(values, literal(v, oid, format(bind.ParameterFormatCodes, i)))
	}
	return values
}

// format returns the format of value i: text if none is given, one for all, or one each.
func format(formats []int16, i int) int16 {
	switch {
	case len(formats) == 1:
		return formats[0]
	case i < len(formats):
		return formats[i]
	}
	return pgproto3.TextFormat
}

// literal returns a parameter as SQL writes it; nil is NULL.
func literal(v []byte, oid uint32, format int16) string {
	if v == nil {
		return null
	}
	shown, bare := show(v, oid, format)
	if bare || oid == 0 && format == pgproto3.TextFormat && number.MatchString(shown) {
		return shown
	}
	if format == pgproto3.TextFormat || characters[oid] {
		return effect.Quote(v)
	}
	return effect.Quote([]byte(shown))
}

var number = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,18})?$`)

var digits = regexp.MustCompile(`^[-+0-9.eE]{1,100}$`)

// Types whose binary form is the text.
var characters = map[uint32]bool{
	pgtype.TextOID: true, pgtype.VarcharOID: true, pgtype.BPCharOID: true, pgtype.NameOID: true, pgtype.JSONOID: true,
	pgtype.UnknownOID: true, pgtype.XMLOID: true, pgtype.QCharOID: true,
}

// Types whose values are written without quotes.
var numbers = map[uint32]bool{
	pgtype.Int2OID: true, pgtype.Int4OID: true, pgtype.Int8OID: true, pgtype.OIDOID: true,
	pgtype.Float4OID: true, pgtype.Float8OID: true, pgtype.NumericOID: true,
}

// show returns a value for people. bare reports that it needs no quotes: it is a number, or a
// placeholder for a value that is not shown. A time differs in each run, and gets the same placeholder.
func show(v []byte, oid uint32, format int16) (shown string, bare bool) {
	switch oid {
	case pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.TimeOID, pgtype.TimetzOID:
		return "<time>", true
	}
	if format == pgproto3.TextFormat {
		if oid == pgtype.BoolOID && len(v) == 1 {
			return strconv.FormatBool(v[0] == 't' || v[0] == '1'), true
		}
		return string(v[:min(len(v), longestValue)]), numbers[oid] && digits.Match(v)
	}
	if characters[oid] {
		return string(v[:min(len(v), longestValue)]), false
	}
	if shown, bare, ok := fixed(v, oid); ok {
		return shown, bare
	}
	switch {
	case oid == pgtype.NumericOID:
		if n, ok := numeric(v); ok {
			return n, true
		}
	case oid == pgtype.JSONBOID && len(v) > 0:
		return string(v[1:min(len(v), longestValue)]), false // the first byte is a version
	case arrays[oid]:
		if a, ok := array(v); ok {
			return a, false
		}
	}
	return fmt.Sprintf("<%d bytes>", len(v)), true
}

// fixed returns a value whose type has a fixed length.
func fixed(v []byte, oid uint32) (shown string, bare, ok bool) {
	m := pgtype.NewMap()
	of, known := m.TypeForOID(oid)
	if !known || !fixedTypes[oid] {
		return "", false, false
	}
	value, err := of.Codec.DecodeValue(m, oid, pgproto3.BinaryFormat, v)
	if err != nil {
		return "", false, false
	}
	switch value := value.(type) {
	case time.Time:
		return value.Format(time.DateOnly), false, true
	case [16]byte:
		return fmt.Sprintf("%x-%x-%x-%x-%x", value[:4], value[4:6], value[6:8], value[8:10], value[10:]), false, true
	case pgtype.InfinityModifier:
		return value.String(), false, true
	}
	return fmt.Sprint(value), true, true
}

var fixedTypes = map[uint32]bool{
	pgtype.BoolOID: true, pgtype.Int2OID: true, pgtype.Int4OID: true, pgtype.OIDOID: true, pgtype.Int8OID: true,
	pgtype.Float4OID: true, pgtype.Float8OID: true, pgtype.DateOID: true, pgtype.UUIDOID: true,
}

// numeric returns a number from its binary form: the number of digits to the base of 10,000, the weight
// of the first, a sign, the number of shown decimals, and the digits (numeric.c, numeric_send).
func numeric(v []byte) (string, bool) {
	const negative = 0x4000
	if len(v) < 8 {
		return "", false
	}
	n, weight := int(binary.BigEndian.Uint16(v)), int(int16(binary.BigEndian.Uint16(v[2:])))
	sign, decimals := binary.BigEndian.Uint16(v[4:]), int(binary.BigEndian.Uint16(v[6:]))
	if len(v) != 8+2*n || sign&^negative != 0 || n > 20 || weight > 20 || weight < -20 || decimals > 80 {
		return "", false // NaN and Infinity have signs of their own
	}
	digit := func(i int) int {
		if i < 0 || i >= n {
			return 0
		}
		return int(binary.BigEndian.Uint16(v[8+2*i:]))
	}
	var b strings.Builder
	if sign == negative {
		b.WriteByte('-')
	}
	b.WriteString(strconv.Itoa(digit(0) * min(1, max(0, weight+1))))
	for i := 1; i <= weight; i++ {
		fmt.Fprintf(&b, "%04d", digit(i))
	}
	if decimals > 0 {
		var fraction strings.Builder
		for i := weight + 1; fraction.Len() < decimals; i++ {
			fmt.Fprintf(&fraction, "%04d", digit(i))
		}
		b.WriteString("." + fraction.String()[:decimals])
	}
	return b.String(), true
}

var arrays = map[uint32]bool{
	pgtype.BoolArrayOID: true, pgtype.Int2ArrayOID: true, pgtype.Int4ArrayOID: true, pgtype.Int8ArrayOID: true, pgtype.TextArrayOID: true,
	pgtype.VarcharArrayOID: true, pgtype.UUIDArrayOID: true, pgtype.NumericArrayOID: true, pgtype.Float8ArrayOID: true,
}

// array returns an array of one dimension from its binary form: the number of dimensions, whether it
// has NULLs, the type, the length, the first index, and each value with its length (arrayfuncs.c,
// array_send).
func array(v []byte) (string, bool) {
	const most = 20
	if len(v) < 12 {
		return "", false
	}
	dimensions, oid := binary.BigEndian.Uint32(v), binary.BigEndian.Uint32(v[8:])
	if dimensions == 0 {
		return "{}", true
	}
	if dimensions != 1 || len(v) < 20 || arrays[oid] {
		return "", false
	}
	n := binary.BigEndian.Uint32(v[12:])
	v = v[20:]
	var all []string
	for i := uint32(0); i < n; i++ {
		if i == most {
			all = append(all, "...")
			break
		}
		if len(v) < 4 {
			return "", false
		}
		size := int64(int32(binary.BigEndian.Uint32(v)))
		v = v[4:]
		if size == -1 {
			all = append(all, null)
			continue
		}
		if size < 0 || size > int64(len(v)) {
			return "", false
		}
		one, _ := show(v[:size], oid, pgproto3.BinaryFormat)
		all = append(all, one)
		v = v[size:]
	}
	return "{" + strings.Join(all, ",") + "}", true
}
