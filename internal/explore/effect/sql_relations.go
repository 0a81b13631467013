package effect

import "slices"

// Relations returns the tables and views that the text names, in lower case, without quotes and schema,
// each once. It may also return other names, such as the alias of a subquery. For a text longer than
// 1 MiB it returns none.
func Relations(sql string, d Dialect) (names []string) {
	if len(sql) > longest {
		return nil
	}
	t, _ := tokens(sql, d, d == MySQL)
	return relationsOf(t)
}

func relationsOf(t []token) (names []string) {
	for i := 0; i < len(t); i++ {
		if !slices.ContainsFunc(beforeRelation, t[i].is) || t[i].is("UPDATE") && i > 0 && slices.ContainsFunc(noUpdate, t[i-1].is) {
			continue
		}
		for next := true; next; i++ { // FROM a, b
			name := ""
			for i+1 < len(t) && (t[i+1].is("ONLY") || t[i+1].is("LATERAL")) {
				i++
			}
			if last := qualified(t, i+1); last >= 0 {
				i, name = last, unquoted(t[last].text)
			}
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
			for i+1 < len(t) && (t[i+1].is("AS") || t[i+1].kind == word && !slices.ContainsFunc(afterRelation, t[i+1].is) || t[i+1].kind == identifier) {
				i++ // its alias
			}
			next = name != "" && i+1 < len(t) && t[i+1].text == ","
		}
		i--
	}
	return names
}

// beforeRelation are the words before a table. After a word of noUpdate, UPDATE does not begin a
// statement. The words of afterRelation can follow a table, and are not its alias.
var (
	beforeRelation = []string{"FROM", "JOIN", "INTO", "UPDATE", "USING", "TABLE"}
	noUpdate       = []string{"FOR", "KEY", "DO", "ON"} // FOR UPDATE, NO KEY UPDATE, DUPLICATE KEY UPDATE, DO UPDATE
	afterRelation  = []string{
		"WHERE", "SET", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ON", "USING", "VALUES", "SELECT", "GROUP", "HAVING", "ORDER",
		"LIMIT", "OFFSET", "FETCH", "FOR", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "DEFAULT", "RETURNING", "LOCK", "PARTITION", "USE", "FORCE", "IGNORE",
	}
)
