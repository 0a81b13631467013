package gate

import (
	"database/sql/driver"
	"regexp"
	"strings"

	"github.com/oversell/oversell/internal/explore/serverstate"
)

// placeholder matches one placeholder: ?, or $1 in PostgreSQL, where gorm numbers them in order.
var placeholder = regexp.MustCompile(`\?|\$[0-9]+`)

func withValues(query string, args []driver.NamedValue) string {
	var b strings.Builder
	var columns []string
	if strings.HasPrefix(query, "INSERT INTO") {
		_, list, _ := strings.Cut(query, "(")
		list, _, _ = strings.Cut(list, ")")
		columns = strings.Split(list, ",")
	}
	for {
		at := placeholder.FindStringIndex(query)
		if at == nil || len(args) == 0 {
			break
		}
		b.WriteString(query[:at[0]])
		query = query[at[1]:]
		if len(columns) > 0 && columns[0] == "waited_ms" { // the value differs in each run
			args[0].Value = "MS"
		}
		if len(columns) > 0 {
			columns = append(columns[1:], columns[0])
		}
		switch v := args[0].Value.(type) {
		case string, []byte:
			b.WriteString("'" + serverstate.Show(v) + "'")
		default:
			b.WriteString(serverstate.Show(v))
		}
		args = args[1:]
	}
	return b.String() + query
}
