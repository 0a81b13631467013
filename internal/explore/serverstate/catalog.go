package serverstate

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
)

// ReadCatalog reads the code that a database runs inside statements, such as triggers. The protocol is "mysql" or
// "postgres". In MySQL, it fails for a user without the privilege TRIGGER.
func ReadCatalog(ctx context.Context, db *sql.DB, protocol string) (*effect.Catalog, error) {
	tables, err := ReadTables(ctx, db, protocol)
	if err != nil {
		return nil, err
	}
	dialect, _ := effect.DialectOf(protocol)
	c := &effect.Catalog{Dialect: dialect, Tables: map[string]*effect.Relation{}, Routines: map[string][]*effect.Routine{}, Transactions: map[string]bool{}}
	for name, one := range tables {
		c.Tables[name] = &effect.Relation{Parts: one.Parts}
	}
	r := catalogReader{reader{ctx: ctx, db: db}, c, map[string]*effect.Routine{}}
	if dialect == effect.MySQL {
		r.mysql()
	} else {
		r.postgres()
	}
	return c, r.err
}

type catalogReader struct {
	reader
	c        *effect.Catalog
	routines map[string]*effect.Routine // by their id in the database
}

const (
	mysqlRoutines = `SELECT LOWER(CONCAT(routine_schema, '.', routine_name, '.', routine_type)), LOWER(routine_schema), LOWER(routine_name), routine_type = 'PROCEDURE', sql_data_access,
	COALESCE(routine_definition, '') FROM information_schema.routines WHERE routine_type IN ('PROCEDURE', 'FUNCTION') AND routine_schema NOT IN ('mysql', 'sys')`
	mysqlParameters = `SELECT LOWER(CONCAT(specific_schema, '.', specific_name, '.', routine_type)), LOWER(parameter_name) FROM information_schema.parameters
	WHERE ordinal_position > 0 ORDER BY 1, ordinal_position`
	mysqlTriggersOf = `SELECT LOWER(event_object_table), trigger_name, event_manipulation, action_statement FROM information_schema.triggers`
	mysqlViews      = `SELECT LOWER(table_name), view_definition FROM information_schema.views WHERE table_schema NOT IN ('mysql', 'sys')`
	mysqlCascades   = `SELECT LOWER(c.table_name), LOWER(c.referenced_table_name), LOWER(k.referenced_column_name),
	c.delete_rule NOT IN ('RESTRICT', 'NO ACTION'), c.update_rule NOT IN ('RESTRICT', 'NO ACTION')
	FROM information_schema.referential_constraints c JOIN information_schema.key_column_usage k ON k.constraint_schema = c.constraint_schema
		AND k.constraint_name = c.constraint_name AND k.table_name = c.table_name`
)

func (r *catalogReader) mysql() {
	var key, schema, name, text, access, on string
	var procedure, deletes, updates bool
	r.each(mysqlRoutines, func() {
		reads := access != "NO SQL"
		r.routine(key, effect.Routine{Schema: schema, Name: name, Procedure: procedure, Text: text, Reads: reads, Writes: reads && access != "READS SQL DATA", Fresh: true})
	}, &key, &schema, &name, &procedure, &access, &text)
	r.each(mysqlParameters, func() {
		if one := r.routines[key]; one != nil {
			one.Params = append(one.Params, name)
			one.Min, one.Max = len(one.Params), len(one.Params)
		}
	}, &key, &name)
	r.each(mysqlTriggersOf, func() {
		r.code(schema, effect.Code{Name: "trigger " + name, On: eventOf(on), Text: text})
	}, &schema, &name, &on, &text)
	r.each(mysqlViews, func() { r.view(name, text) }, &name, &text)
	r.each(mysqlCascades, func() { r.cascade(schema, name, key, deletes, updates) }, &schema, &name, &key, &deletes, &updates)
}

func eventOf(word string) effect.Event {
	return map[string]effect.Event{"INSERT": effect.Inserts, "UPDATE": effect.Updates, "DELETE": effect.Deletes}[word]
}

// The queries of catalogReader.postgres. They exclude the C routines of all extensions except dblink, since the
// excluded routines use only their arguments.
const (
	postgresOwn      = `n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'`
	postgresRoutines = `SELECT p.oid::text, lower(n.nspname), lower(p.proname), p.prokind = 'p',
	CASE WHEN l.lanname NOT IN ('sql', 'plpgsql') THEN '' WHEN p.prosrc = '' THEN pg_get_functiondef(p.oid) ELSE p.prosrc END, p.provolatile,
	CASE WHEN p.proargmodes IS NULL THEN COALESCE(array_to_string(p.proargnames, ','), '') ELSE '' END,
	p.pronargs - p.pronargdefaults, CASE WHEN p.provariadic <> 0 THEN 1000 ELSE greatest(p.pronargs, array_length(p.proallargtypes, 1)) END,
	EXISTS (SELECT 1 FROM pg_proc b WHERE b.pronamespace = 'pg_catalog'::regnamespace AND b.proname = p.proname AND b.proargtypes = p.proargtypes)
	FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
	WHERE ` + postgresOwn + ` AND p.prokind IN ('f', 'p') AND NOT (l.lanname IN ('c', 'internal') AND p.proname NOT LIKE 'dblink%'
		AND EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'))`
	postgresTriggers = `SELECT lower(c.relname), t.tgname, t.tgtype::int, t.tginitdeferred, t.tgfoid::text,
	COALESCE((SELECT string_agg(lower(a.attname), ',') FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (t.tgattr)), '')
	FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')`
	postgresRules = `SELECT lower(c.relname), r.rulename, r.ev_type::text, pg_get_ruledef(r.oid) FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
	JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ` + postgresOwn + ` AND r.rulename <> '_RETURN' AND r.ev_enabled IN ('O', 'A')`
	postgresViews = `SELECT lower(c.relname), pg_get_viewdef(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE ` + postgresOwn + ` AND c.relkind = 'v'`
	postgresExpressions = `SELECT lower(c.relname), x.at_update, x.text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL (
		SELECT a.attgenerated <> '' AS at_update, pg_get_expr(d.adbin, d.adrelid) AS text FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.adrelid = c.oid
		UNION ALL SELECT true, pg_get_constraintdef(k.oid) FROM pg_constraint k WHERE k.contype = 'c' AND (k.conrelid = c.oid
			OR k.contypid IN (SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0))
		UNION ALL SELECT true, pg_get_indexdef(i.indexrelid) FROM pg_index i WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
	) x WHERE ` + postgresOwn + ` AND c.relkind IN ('r', 'p')`
	postgresNumbers = `SELECT DISTINCT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE ` + postgresOwn + ` AND a.atttypid::regtype::text IN ('xid', 'xid8') AND a.attnum > 0`
	postgresCascades = `SELECT lower(c.relname), lower(r.relname), lower(a.attname), k.confdeltype IN ('c', 'n', 'd'), k.confupdtype IN ('c', 'n', 'd')
	FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class r ON r.oid = k.confrelid
	CROSS JOIN unnest(k.confkey) WITH ORDINALITY p(number, place) JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = p.number WHERE k.contype = 'f'`
)

// The bits of pg_trigger.tgtype (pg_trigger.h), and the events of pg_rewrite.ev_type.
var (
	triggerEvents = map[int]effect.Event{4: effect.Inserts, 8: effect.Deletes, 16: effect.Updates, 32: effect.Truncates}
	ruleEvents    = map[string]effect.Event{"2": effect.Updates, "3": effect.Inserts, "4": effect.Deletes}
)

// ruleAction matches the statements of a rule.
var ruleAction = regexp.MustCompile(`(?is)\bDO\s+(?:INSTEAD\s+|ALSO\s+)?\(?(.*)`)

func (r *catalogReader) postgres() {
	var key, schema, name, text, volatility, names string
	var procedure, built, deletes, updates bool
	var least, most, bits int
	r.each(postgresRoutines, func() {
		one := effect.Routine{Schema: schema, Name: name, Procedure: procedure, Text: text, Reads: volatility != "i", Writes: volatility == "v", Fresh: volatility == "v", Min: least, Max: most, Built: built}
		if names != "" {
			one.Params = strings.Split(strings.ToLower(names), ",")
		}
		r.routine(key, one)
	}, &key, &schema, &name, &procedure, &text, &volatility, &names, &least, &most, &built)
	r.each(postgresTriggers, func() {
		one := effect.Code{Name: "trigger " + name, Run: r.routines[key], Late: deletes}
		for bit, on := range triggerEvents {
			if bits&bit != 0 {
				one.On |= on
			}
		}
		if names != "" {
			one.Of = strings.Split(names, ",")
		}
		if one.Run != nil { // if it is nil, the trigger belongs to an extension
			r.code(schema, one)
		}
	}, &schema, &name, &bits, &deletes, &key, &names)
	r.each(postgresRules, func() {
		if m := ruleAction.FindStringSubmatch(text); m != nil {
			r.code(schema, effect.Code{Name: "rule " + name, On: ruleEvents[key], Text: strings.TrimRight(m[1], "; )\n")})
		}
	}, &schema, &name, &key, &text)
	r.each(postgresNumbers, func() { r.c.Transactions[name] = true }, &name)
	r.each(postgresViews, func() { r.view(name, text) }, &name, &text)
	r.each(postgresExpressions, func() {
		one := effect.Code{On: effect.Inserts, Text: text}
		if updates {
			one.On |= effect.Updates
		}
		r.code(name, one)
	}, &name, &updates, &text)
	r.each(postgresCascades, func() { r.cascade(schema, name, key, deletes, updates) }, &schema, &name, &key, &deletes, &updates)
}

func (r *catalogReader) routine(key string, one effect.Routine) {
	r.routines[key] = &one
	r.c.Routines[one.Name] = append(r.c.Routines[one.Name], &one)
}

// table returns a table or a view of the catalog. It adds the table if it is new.
func (r *catalogReader) table(name string) *effect.Relation {
	if r.c.Tables[name] == nil {
		r.c.Tables[name] = &effect.Relation{}
	}
	return r.c.Tables[name]
}

func (r *catalogReader) code(table string, one effect.Code) {
	to := r.table(table)
	to.Code = append(to.Code, one)
}

func (r *catalogReader) view(name, definition string) { r.table(name).View = definition }

// cascade records a foreign key from child to parent, and whether changes of the parent change child.
func (r *catalogReader) cascade(child, parent, column string, deletes, updates bool) {
	from, to := r.table(child), r.table(parent)
	from.Related, to.Related = append(from.Related, parent), append(to.Related, child)
	if deletes && !slices.ContainsFunc(to.Deletes, func(k effect.Cascade) bool { return k.Table == child }) {
		to.Deletes = append(to.Deletes, effect.Cascade{Table: child})
	}
	if updates {
		to.Updates = append(to.Updates, effect.Cascade{Table: child, Of: []string{column}})
	}
}
