package rows

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/serverstate"
)

// images holds the values of the rows that a buyer has inserted, by table and primary key.
type images map[string]map[string]*image

// An image holds the values of a row. Until tx ends, no other connection can see or change the row.
type image struct {
	tx     *transaction
	values map[string]string
}

func (m images) put(table, key string, one *image) {
	if m[table] == nil {
		m[table] = map[string]*image{}
	}
	m[table][key] = one
}

// merged adds the remembered values of a row to the map `fixed`, if `fixed` identifies one row by its primary key.
func (t *Tracker) merged(u *Usage, o Command, fixed map[string][]string) map[string][]string {
	table := u.table
	shape := t.shapes[table]
	at := fixed[shape.Primary]
	if shape.Primary == "" || len(at) != 1 {
		return fixed
	}
	one := t.rows[o.Buyer][table][at[0]]
	if one == nil {
		return fixed
	}
	all := lists(one.values)
	for column := range all {
		if _, has := fixed[column]; !has && one.tx != t.open[o.Conn()] {
			u.knew = append(u.knew, cell{table, column, at[0]})
		}
	}
	maps.Copy(all, fixed)
	return all
}

func lists(row map[string]string) map[string][]string {
	all := map[string][]string{}
	for column, value := range row {
		all[column] = []string{value}
	}
	return all
}

// oneUUID matches a UUID as PostgreSQL writes it.
var oneUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// A naming gives names to values that differ between runs.
type naming struct{ *Tracker }

// named replaces the values of an Access by their names. It omits a value that has several spellings. It also
// omits a value without a name that may differ in the next run.
func (t naming) named(a effect.Access, masked string) effect.Access {
	rows := func(r effect.Rows) effect.Rows {
		fixed := map[string][]string{}
		for column, values := range r.Fixed {
			var all []string
			for _, v := range values {
				if name, known := t.known(r.Table, column, v, masked); known {
					all = append(all, name)
				}
			}
			if len(all) == len(values) {
				fixed[column] = slices.Compact(slices.Sorted(slices.Values(all)))
			}
		}
		return effect.Rows{Table: r.Table, Fixed: fixed}
	}
	for i := range a.Reads {
		a.Reads[i] = rows(a.Reads[i])
	}
	if a.Finds.Fixed != nil {
		a.Finds = rows(a.Finds)
	}
	for _, values := range a.Sets {
		for column, v := range values {
			if a.None || v == nil || *v == schedule.Null || *v == effect.Default {
				continue
			}
			values[column] = nil
			if name, known := t.known(a.Finds.Table, column, *v, masked); known {
				values[column] = &name
			}
		}
	}
	return a
}

// known returns the name of a value, or the value itself if it is the same in each run. The text `masked` is the
// statement with names in place of values; "" if the value is not from a statement.
func (t naming) known(table, column, v, masked string) (name string, known bool) {
	plain := true
	switch t.shapes[table].Columns[column].Kind {
	case serverstate.Unclear:
		return "", false
	case serverstate.Number:
		plain = effect.WholeNumber.MatchString(v)
	case serverstate.UUID:
		plain = oneUUID.MatchString(v)
	case serverstate.Text:
		plain = !strings.HasSuffix(v, " ") // varchar(n) removes surplus spaces
	}
	switch {
	case !plain || strings.ContainsAny(v, "<\x00"):
		return "", false
	case t.raw:
		return v, true
	case t.names.Known(v) != "":
		return t.names.Known(v), true
	}
	return v, strings.Contains(masked, v) && t.names.Masked(v) == v
}
