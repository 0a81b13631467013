package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oversell/oversell/internal/explore/effect"
)

// longestValue is the maximum length of a shown value, in bytes.
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

// format returns the format of value i. The list `formats` is empty (text), has one entry for all values,
// or one for each.
func format(formats []int16, i int) int16 {
	switch {
	case len(formats) == 1:
		return formats[0]
	case i < len(formats):
		return formats[i]
	}
	return pgproto3.TextFormat
}

// literal returns a parameter as an SQL literal. A nil value is NULL.
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

// characters lists the types with the same binary and text form.
var characters = map[uint32]bool{
	pgtype.TextOID: true, pgtype.VarcharOID: true, pgtype.BPCharOID: true, pgtype.NameOID: true, pgtype.JSONOID: true,
	pgtype.UnknownOID: true, pgtype.XMLOID: true, pgtype.QCharOID: true,
}

// numbers lists the types with values that need no quotes.
var numbers = map[uint32]bool{
	pgtype.Int2OID: true, pgtype.Int4OID: true, pgtype.Int8OID: true, pgtype.OIDOID: true,
	pgtype.Float4OID: true, pgtype.Float8OID: true, pgtype.NumericOID: true,
}

// show returns a value for people. The result `bare` is true if the value needs no quotes, as a number or
// a placeholder. All times get the same placeholder, since they differ in each run.
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
	if oid == pgtype.JSONBOID && len(v) > 0 {
		return string(v[1:min(len(v), longestValue)]), false // the first byte is a version
	}
	if shown, bare, ok := decoded(v, oid); ok {
		return shown, bare
	}
	return fmt.Sprintf("<%d bytes>", len(v)), true
}

// types holds PostgreSQL's types. Goroutines may share it, since decoding only reads it.
var types = pgtype.NewMap()

func decoded(v []byte, oid uint32) (shown string, bare, ok bool) {
	if arrays[oid] {
		var a pgtype.Array[any]
		if types.Scan(oid, pgproto3.BinaryFormat, v, &a) != nil || len(a.Dims) > 1 {
			return "", false, false
		}
		return array(a.Elements), false, true
	}
	of, known := types.TypeForOID(oid)
	if !known || !scalars[oid] {
		return "", false, false
	}
	value, err := of.Codec.DecodeValue(types, oid, pgproto3.BinaryFormat, v)
	if err != nil {
		return "", false, false
	}
	shown, bare = scalar(value)
	return shown, bare, true
}

func array(elements []any) string {
	const most = 20
	var all []string
	for _, one := range elements[:min(len(elements), most)] {
		shown, _ := scalar(one)
		all = append(all, shown)
	}
	if len(elements) > most {
		all = append(all, "...")
	}
	return "{" + strings.Join(all, ",") + "}"
}

func scalar(value any) (shown string, bare bool) {
	switch value := value.(type) {
	case nil:
		return null, true
	case string:
		return value[:min(len(value), longestValue)], false
	case time.Time:
		return value.Format(time.DateOnly), false
	case [16]byte:
		return fmt.Sprintf("%x-%x-%x-%x-%x", value[:4], value[4:6], value[6:8], value[8:10], value[10:]), false
	case pgtype.InfinityModifier:
		return value.String(), false
	case pgtype.Numeric:
		text, _ := value.Value()
		shown = fmt.Sprint(text)
		return shown[:min(len(shown), longestValue)], value.Int != nil // neither NaN nor infinity
	}
	return fmt.Sprint(value), true
}

var scalars = map[uint32]bool{
	pgtype.BoolOID: true, pgtype.Int2OID: true, pgtype.Int4OID: true, pgtype.OIDOID: true, pgtype.Int8OID: true,
	pgtype.Float4OID: true, pgtype.Float8OID: true, pgtype.NumericOID: true, pgtype.DateOID: true, pgtype.UUIDOID: true,
}

var arrays = map[uint32]bool{
	pgtype.BoolArrayOID: true, pgtype.Int2ArrayOID: true, pgtype.Int4ArrayOID: true, pgtype.Int8ArrayOID: true, pgtype.TextArrayOID: true,
	pgtype.VarcharArrayOID: true, pgtype.UUIDArrayOID: true, pgtype.NumericArrayOID: true, pgtype.Float8ArrayOID: true,
}
