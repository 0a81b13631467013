package postgres_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/wire/postgres"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// values: show returns the server's text form for the binary form of a value.
func values(t *testing.T, server *localserver.Postgres) {
	ctx := soon(t)
	c := must(pgconn.Connect(ctx, server.URL()))(t)
	defer c.Close(ctx)
	var columns []string
	for kind, values := range map[string]string{
		"int2": "-1 32767", "int4": "-2147483648 7", "int8": "-9223372036854775808", "oid": "4294967295", "float4": "1.5 -0.25", "float8": "1e+100 0.1",
		"bool":    "true false",
		"numeric": "0 1 -1 10000 9999 0.0001 -0.00001234 12345678.87654321 100000000 20.50 1e20 99999999999999999999.99",
		"text":    "a é", "varchar": "b", "bpchar": "c", "name": "d", "json": "[1]", "jsonb": "[1]", "date": "2026-11-23 1999-12-31 0044-03-15",
		"uuid":   "6f0e4c6e-0000-4000-8000-0123456789ab",
		"int4[]": "{1,-2} {} {NULL,3}", "int8[]": "{1}", "text[]": "{a,b}", "numeric[]": "{1.50}", "uuid[]": "{6f0e4c6e-0000-4000-8000-0123456789ab}",
	} {
		for _, v := range strings.Fields(values) {
			columns = append(columns, "'"+v+"'::"+kind)
		}
	}
	binaries := c.ExecParams(ctx, "SELECT "+strings.Join(columns, ", "), nil, nil, nil, []int16{1}).Read()
	texts := c.ExecParams(ctx, "SELECT "+strings.Join(columns, "::text, ")+"::text", nil, nil, nil, nil).Read()
	if binaries.Err != nil || texts.Err != nil {
		t.Fatal(binaries.Err, texts.Err)
	}
	for i, v := range binaries.Rows[0] {
		if got, _ := postgres.Show(v, binaries.FieldDescriptions[i].DataTypeOID, 1); got != string(texts.Rows[0][i]) {
			t.Errorf("%s is shown as %s", columns[i], got)
		}
	}
	for _, one := range []struct {
		v      []byte
		oid    uint32
		format int16
		want   string
	}{
		{nil, 0, 0, "NULL"},
		{[]byte("7"), 0, 0, "7"},
		{[]byte("07a"), 0, 0, "'07a'"},
		{[]byte("7"), pgtype.TextOID, 0, "'7'"},
		{[]byte("t"), pgtype.BoolOID, 0, "true"},
		{[]byte{1, 2, 3}, pgtype.ByteaOID, 1, "<3 bytes>"},
		{[]byte{1, 2, 3}, pgtype.Int4OID, 1, "<3 bytes>"},
		{make([]byte, 8), pgtype.TimestamptzOID, 1, "<time>"},
		{[]byte{0, 0, 0, 0, 0, 0, 0, 2}, pgtype.NumericOID, 1, "0"}, // pgtype drops the decimals of 0.00
		{[]byte{0, 0, 0, 0, 0xc0, 0, 0, 0}, pgtype.NumericOID, 1, "'NaN'"},
		{[]byte{0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7}, pgtype.Int4ArrayOID, 1, "<36 bytes>"},
	} {
		got := postgres.Literal(one.v, one.oid, one.format)
		if got != one.want && got != "'"+one.want+"'" || strings.HasPrefix(got, "'<") {
			t.Errorf("%q %d: %s, want %s", one.v, one.oid, got, one.want)
		}
	}
}

// FuzzValue: every value is shown without a panic.
func FuzzValue(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, uint32(pgtype.NumericOID), int16(1))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7}, uint32(pgtype.Int4ArrayOID), int16(1))
	f.Add([]byte("a"), uint32(pgtype.JSONBOID), int16(1))
	f.Add([]byte{}, uint32(pgtype.BoolOID), int16(0))
	f.Fuzz(func(t *testing.T, v []byte, oid uint32, format int16) {
		if got := postgres.Literal(v, oid, format); strings.ContainsAny(got, "\n\r") {
			t.Errorf("%q is not one line", got)
		}
	})
}

// FuzzStartup: readStartup returns the bytes before a login unchanged, or refuses them.
func FuzzStartup(f *testing.F) {
	for _, m := range []interface{ Encode([]byte) ([]byte, error) }{
		&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: map[string]string{"user": "a", "replication": "true"}},
		&pgproto3.SSLRequest{}, &pgproto3.CancelRequest{ProcessID: 1, SecretKey: []byte{1, 2, 3, 4}},
	} {
		b, err := m.Encode(nil)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte{0x16, 3, 1})
	f.Add([]byte{0, 0, 0, 9, 0, 3, 0, 0, 'a'})
	f.Fuzz(func(t *testing.T, b []byte) {
		if raw, _, err := postgres.ReadStartup(b); err == nil && !bytes.HasPrefix(b, raw) {
			t.Errorf("%q is not what was sent", raw)
		}
	})
}

// FuzzSession: the session relays all bytes unchanged and in order, or the connection ends.
func FuzzSession(f *testing.F) {
	add := func(up, down []interface{ Encode([]byte) ([]byte, error) }) {
		var both [2][]byte
		for i, all := range [][]interface{ Encode([]byte) ([]byte, error) }{up, down} {
			for _, m := range all {
				var err error
				if both[i], err = m.Encode(both[i]); err != nil {
					f.Fatal(err)
				}
			}
		}
		f.Add(both[0], both[1])
	}
	type messages = []interface{ Encode([]byte) ([]byte, error) }
	row := &pgproto3.DataRow{Values: [][]byte{{0, 0, 0, 1}, nil}}
	fields := &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("id"), DataTypeOID: pgtype.Int4OID, Format: 1}}}
	ready := &pgproto3.ReadyForQuery{TxStatus: 'I'}
	canceled := &pgproto3.ErrorResponse{Severity: "ERROR", Code: "57014", Message: "canceling statement due to user request"}
	add(messages{&pgproto3.Query{String: "INSERT INTO a VALUES (1) RETURNING id"}, &pgproto3.Terminate{}},
		messages{fields, row, &pgproto3.CommandComplete{CommandTag: []byte("INSERT 0 1")}, ready, &pgproto3.NotificationResponse{Channel: "a"}})
	add(messages{
		parse("a", "SELECT $1"), &pgproto3.Describe{ObjectType: 'S', Name: "a"}, &pgproto3.Flush{},
		&pgproto3.Bind{PreparedStatement: "a", Parameters: [][]byte{{0, 0, 0, 1}}, ParameterFormatCodes: []int16{1}, ResultFormatCodes: []int16{1}},
		&pgproto3.Execute{}, &pgproto3.Close{ObjectType: 'P'}, &pgproto3.Sync{},
	},
		messages{
			&pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{ParameterOIDs: []uint32{pgtype.Int4OID}}, fields, &pgproto3.BindComplete{}, row,
			&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}, &pgproto3.CloseComplete{}, ready,
		})
	add(messages{&pgproto3.Query{String: "COPY a FROM STDIN"}, &pgproto3.CopyData{Data: []byte("1")}, &pgproto3.CopyDone{}},
		messages{&pgproto3.CopyInResponse{}, &pgproto3.CommandComplete{CommandTag: []byte("COPY 1")}, ready})
	add(messages{parse("", "COPY a FROM STDIN"), &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Flush{}, &pgproto3.CopyData{}, &pgproto3.CopyFail{}, &pgproto3.Sync{}},
		messages{&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, canceled, ready})
	add(messages{&pgproto3.FunctionCall{Function: 1}, &pgproto3.Sync{}}, messages{&pgproto3.FunctionCallResponse{}, ready, ready})
	add(messages{&pgproto3.Query{String: "SELECT 1"}}, messages{&pgproto3.NoticeResponse{Message: "a"}, canceled, &pgproto3.ParameterStatus{Name: "a"}, ready})
	f.Add([]byte{'Q', 0x7f, 0xff, 0xff, 0xff}, []byte{'Z', 0, 0, 0, 3})
	f.Fuzz(func(t *testing.T, up, down []byte) {
		s := postgres.Logged(up, down)
		var sent, heard []byte
		for ended := false; ; {
			c, err := s.Next()
			if err != nil {
				break
			}
			sent = append(sent, c.Raw...)
			if strings.ContainsAny(c.Text, "\n\r") {
				t.Errorf("%q is not one line", c.Text)
			}
			if !c.Gated && c.Ends {
				t.Errorf("%q ends a transaction, and is not gated", c.Text)
			}
			current := c
			if c.Silent {
				current = nil
			}
			from := len(heard)
			for !ended {
				m, err := s.Receive(current)
				ended = err != nil
				heard = append(heard, m.Raw...)
				if current == nil || m.Ends {
					break
				}
			}
			_ = s.TimedOut(c, heard[from:])
		}
		if !bytes.HasPrefix(up, sent) || !bytes.HasPrefix(down, heard) {
			t.Errorf("%q of %q, %q of %q", sent, up, heard, down)
		}
		_ = s.Deadlocked(&wire.Command{}, down)
	})
}

// TestLongMessage: an announced length allocates no memory before the bytes come. A message of many
// megabytes arrives complete.
func TestLongMessage(t *testing.T) {
	lying := binary.BigEndian.AppendUint32([]byte{'Q'}, 1<<30-2)
	if n := testing.AllocsPerRun(1, func() { _, _ = postgres.Logged(lying, nil).Next() }); n > 100 {
		t.Error(n, "allocations")
	}
	long := append(binary.BigEndian.AppendUint32([]byte{'Q'}, 4+20<<20), bytes.Repeat([]byte{'a'}, 20<<20)...)
	if c := must(postgres.Logged(long, nil).Next())(t); !bytes.Equal(c.Raw, long) || len(c.Text) > 3000 {
		t.Error(len(c.Raw), len(c.Text))
	}
}
