package serverstate

import (
	"context"
	"database/sql"
	"maps"
)

// Shapes are the shapes of PostgreSQL's tables by name, in lower case and without schema. A name that occurs in several
// schemas is omitted.
type Shapes map[string]*Shape

// A Shape has the properties of a table by which the text of a statement identifies its rows.
type Shape struct {
	Columns map[string]Column
	// Keys are the columns of each unique index, without expressions. Unclear reports an index that also compares
	// expressions, counts NULL as equal, or excludes rows by another operator.
	Keys    [][]string
	Unclear bool
	Primary string // the column of the primary key; "" if it has several columns, or there is none
	Parents []Parent
	Kids    []string // the tables with a foreign key to this table
	// Late reports that a constraint is checked only at the end of the transaction, or that a column is generated from
	// others. Then the text of a statement does not show which values it changes.
	Late bool
}

// A Column is a column of a table.
type Column struct {
	Kind    Kind
	Default Fill
}

// A Kind says whether two different constants in a column always mean different values.
type Kind string

// The kinds. In a column of any other type, two texts may mean the same value.
const (
	Unclear Kind = ""
	Number  Kind = "n" // a whole number
	UUID    Kind = "u"
	Text    Kind = "t" // text with a collation that compares bytes for equality
)

// A Fill tells how the server fills a column if an INSERT omits it.
type Fill string

const (
	Empty  Fill = ""  // NULL
	Fresh  Fill = "f" // a value that no other row has: from a sequence, or a random UUID
	Filled Fill = "o" // another value
)

// A Parent is a foreign key: Columns reference Refs of Table.
type Parent struct {
	Columns []string
	Table   string
	Refs    []string
}

// Tells reports whether the table has the column, and different constants in it are different values.
func (s Shapes) Tells(table, column string) bool {
	return s[table] != nil && s[table].Columns[column].Kind != Unclear
}

const (
	shapesColumns = `SELECT c.oid, lower(c.relname), a.attname,
	CASE WHEN t.typname IN ('int2', 'int4', 'int8') THEN 'n' WHEN t.typname = 'uuid' THEN 'u'
		WHEN t.typname IN ('text', 'varchar') AND COALESCE((SELECT l.collisdeterministic FROM pg_collation l WHERE l.oid = a.attcollation), true) THEN 't' ELSE '' END,
	CASE WHEN a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) ~ '^(nextval\(|gen_random_uuid\(\)|uuid_generate_v4\(\))' THEN 'f' WHEN d.oid IS NULL THEN '' ELSE 'o' END
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
	WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'`
	shapesKeys = `SELECT i.indrelid, i.indexrelid, COALESCE(a.attname, ''),
	i.indisexclusion OR a.attname IS NULL OR COALESCE((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false), i.indisprimary
	FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY k(number, place) LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
	WHERE (i.indisunique OR i.indisexclusion) AND k.place <= i.indnkeyatts ORDER BY i.indexrelid, k.place`
	shapesParents = `SELECT k.oid, k.conrelid, k.confrelid, a.attname, b.attname
	FROM pg_constraint k CROSS JOIN unnest(k.conkey, k.confkey) WITH ORDINALITY p(own, other, place)
	JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = p.own JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = p.other
	WHERE k.contype = 'f' ORDER BY k.oid, p.place`
	shapesLate = `SELECT conrelid FROM pg_constraint WHERE condeferrable UNION SELECT confrelid FROM pg_constraint WHERE condeferrable AND contype = 'f'
	UNION SELECT attrelid FROM pg_attribute WHERE attgenerated <> ''`
)

// ReadShapes reads the tables of a PostgreSQL database.
func ReadShapes(ctx context.Context, db *sql.DB) (Shapes, error) {
	all, byID, names := Shapes{}, map[int64]*Shape{}, map[int64]string{}
	var id, index, other int64
	var name, attribute, kind, fill, ref string
	var unclear, primary bool
	r := reader{ctx: ctx, db: db}
	r.each(shapesColumns, func() {
		if byID[id] == nil {
			byID[id], names[id] = &Shape{Columns: map[string]Column{}}, name
			if _, twice := all[name]; twice {
				all[name] = nil
			} else {
				all[name] = byID[id]
			}
		}
		byID[id].Columns[attribute] = Column{Kind(kind), Fill(fill)}
	}, &id, &name, &attribute, &kind, &fill)
	last := int64(-1)
	r.each(shapesKeys, func() {
		s := byID[id]
		if s == nil {
			return
		}
		if index != last {
			s.Keys = append(s.Keys, nil)
		}
		s.Unclear = s.Unclear || unclear
		at := &s.Keys[len(s.Keys)-1]
		*at = append(*at, attribute)
		if primary {
			if s.Primary = attribute; len(*at) > 1 {
				s.Primary = ""
			}
		}
		last = index
	}, &id, &index, &attribute, &unclear, &primary)
	last = -1
	r.each(shapesParents, func() {
		s, parent := byID[id], byID[other]
		if s == nil || parent == nil {
			return
		}
		if index != last {
			s.Parents = append(s.Parents, Parent{Table: names[other]})
			parent.Kids = append(parent.Kids, names[id])
		}
		one := &s.Parents[len(s.Parents)-1]
		one.Columns, one.Refs = append(one.Columns, attribute), append(one.Refs, ref)
		last = index
	}, &index, &id, &other, &attribute, &ref)
	r.each(shapesLate, func() {
		if s := byID[id]; s != nil {
			s.Late = true
		}
	}, &id)
	maps.DeleteFunc(all, func(_ string, s *Shape) bool { return s == nil })
	return all, r.err
}
