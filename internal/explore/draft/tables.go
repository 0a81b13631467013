package draft

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// schemas match the definition of a table. The group is the table's name. The text up to the next match
// contains the columns.
var schemas = []struct {
	files string // endings of file names
	table *regexp.Regexp
	name  func(file, name string) string // returns the table's name in the database; nil: the group is the name
}{
	{".sql", regexp.MustCompile("(?i)CREATE\\s+TABLE\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?(?:[`\"\\[]?\\w+[`\"\\]]?\\.)?[`\"\\[]?(\\w+)"), nil},
	{"schema.prisma", regexp.MustCompile(`(?m)^model\s+(\w+)\s*\{`), nil},
	{".js .ts .php .rb .py", regexp.MustCompile(`(?:createTable|create_table|Schema::create)\(?\s*[:'"](\w+)`), nil}, // Knex, Sequelize, Laravel, Rails, Alembic
	{".js .ts", regexp.MustCompile(`\.define\(\s*['"](\w+)['"]`), plural},                                            // Sequelize
	{".ts", regexp.MustCompile(`@Entity\(\s*(?:\{\s*name:\s*)?['"](\w+)`), nil},                                      // TypeORM
	{"models.py", regexp.MustCompile(`(?m)^class\s+(\w+)\(\s*(?:\w+\.)?Model\s*\)`), djangoTable},
	{".py", regexp.MustCompile(`__tablename__\s*=\s*['"](\w+)`), nil}, // SQLAlchemy
	{".java .kt", regexp.MustCompile(`@Table\(\s*name\s*=\s*"(\w+)"`), nil},
	{".ts", regexp.MustCompile(`@Entity\(\s*\)\s*(?:@\w+\([^)]*\)\s*)*export\s+(?:default\s+)?class\s+(\w+)`), snake},
	{".java .kt", regexp.MustCompile(`@Entity\s+(?:@\w+(?:\([^)]*\))?\s+)*(?:public\s+)?class\s+(\w+)`), snake},
	{".php", regexp.MustCompile(`#\[ORM\\Table\(\s*name:\s*['"]` + "`?" + `(\w+)`), nil},
}

func djangoTable(file, name string) string {
	return path.Base(path.Dir(file)) + "_" + strings.ToLower(name)
}

// capital matches the beginning of a word in a name such as OrderItem.
var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// snake returns the table's name that TypeORM and JPA derive from a class.
func snake(_, name string) string {
	return strings.ToLower(capital.ReplaceAllString(name, "${1}_$2"))
}

func plural(_, name string) string {
	if strings.HasSuffix(name, "s") {
		return name
	}
	return name + "s"
}

var (
	// stockNames match the column with the stock, the best first.
	stockNames = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\b((?:\w+_)?(?:stock|inventory)(?:_(?:quantity|count|level|available|amount|remaining|left))?|count_on_hand|(?:in|on)[sS]tock|stock[A-Z]\w+)\b`),
		regexp.MustCompile(`(?i)\b((?:remaining|available)\w*|seats(?:_\w+)?|units|(?:\w+_)?capacity|tickets_left)\b`),
		regexp.MustCompile(`(?i)\b(quantity|amount|qty)\b`),
	}
	orderTables = []*regexp.Regexp{
		regexp.MustCompile(`(?i)^(?:\w+_)?(?:orders?|purchases?|purchase_history)$`),
		regexp.MustCompile(`(?i)^(?:\w+_)?(?:bookings?|reservations?|tickets?|sales?|claims?|redemptions?|registrations?|checkouts?)$`),
	}
	// noStock matches tables in which a quantity belongs to a buyer, and is not the stock of the shop.
	noStock = regexp.MustCompile(`(?i)order|cart|purchase|line_?item|booking|reservation|sale|payment|invoice|user|history|log`)
	// otherAmount matches columns with a number of units other than the current stock.
	otherAmount = regexp.MustCompile(`(?i)^(?:total|initial|original|max|min|reserved|alert|low|safety|sold|warning)`)
	// hasStock matches tables in which a column "quantity" is the stock.
	hasStock = regexp.MustCompile(`(?i)product|item|goods|stock|inventor|variant|ticket|event|voucher|coupon|sku|seat|book|article|offer|deal`)
	// isType matches the type of a column with a number.
	isType = regexp.MustCompile(`(?i)int|number|numeric|decimal|serial`)
)

// readTables finds the column with the stock and the table of the orders.
func readTables(r *repository, d *Draft) {
	best, bestOrders := len(stockNames), len(orderTables)
	for _, file := range r.files {
		for _, s := range schemas {
			if !endsIn(file, s.files) || path.Base(file) == "down.sql" || strings.HasSuffix(file, ".down.sql") {
				continue
			}
			text := r.text(file)
			found := s.table.FindAllStringSubmatchIndex(text, -1)
			for i, at := range found {
				name := text[at[2]:at[3]]
				if s.name != nil {
					name = s.name(file, name)
				}
				end := len(text)
				if i+1 < len(found) {
					end = found[i+1][0]
				}
				if n := slices.IndexFunc(orderTables, func(e *regexp.Regexp) bool { return e.MatchString(name) }); n >= 0 && n < bestOrders {
					bestOrders = n
					d.Orders = Value{Text: name, Because: file + " has this table"}
				}
				if noStock.MatchString(name) {
					continue
				}
				for n, column := range stockNames[:best] {
					if n == len(stockNames)-1 && !hasStock.MatchString(name) {
						continue
					}
					if c := columnIn(text[at[1]:end], column); c != "" {
						best = n
						d.Stock = &Column{Table: name, Name: c, Because: file + " has this column"}
						break
					}
				}
			}
		}
	}
}

// findGone finds out whether an UPDATE of the stock may find no row, since the program deletes the row,
// or since no file inserts one.
func findGone(r *repository, d *Draft) {
	if d.Stock == nil {
		return
	}
	deletion := regexp.MustCompile("(?i)DELETE\\s+FROM\\s+[`\"\\[]?" + d.Stock.Table + "\\b")
	if file, found := r.search(r.sourceFiles(), deletion); found != nil {
		d.Stock.Gone = file + " deletes these rows"
		return
	}
	creates := cmp.Or(d.Schema.Text, d.Migrate.Text)
	if creates != "" && !seeds.MatchString(creates) && !hasRows(r, d.Stock.Table) {
		d.Stock.Gone = creates + " creates no such row"
	}
}

var (
	// seeds matches a command, or a file, that fills tables.
	seeds = regexp.MustCompile(`(?i)seed|fixture|sample|demo|data\.\w+$`)
	// fills matches a word that inserts rows in a migration, in any language.
	fills = regexp.MustCompile(`(?i)\binsert|\bCOPY\b|\bRunPython\b|\bcreate!?\(|bulk_?create`)
)

// hasRows reports whether a file that fills the tables, or creates them, mentions rows of a table.
func hasRows(r *repository, table string) bool {
	last := table[strings.LastIndex(table, "_")+1:] // the model's name: item for Django's table shop_item
	mention := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(strings.TrimSuffix(last, "s")))
	inserts := regexp.MustCompile("(?i)(?:INSERT\\s+(?:IGNORE\\s+)?INTO|COPY)\\s+(?:[`\"\\[]?\\w+[`\"\\]]?\\.)?[`\"\\[]?" + regexp.QuoteMeta(table) + "\\b")
	return slices.ContainsFunc(r.files, func(file string) bool {
		switch text := r.text(file); {
		case strings.HasSuffix(file, ".sql"):
			return inserts.MatchString(text)
		case seeds.MatchString(file):
			return mention.MatchString(text)
		default:
			return folderName.MatchString(path.Dir(file)) && fills.MatchString(text) && mention.MatchString(text)
		}
	})
}

// columnIn returns the first column of a table that has a numeric type and a name that the expression
// matches.
func columnIn(body string, column *regexp.Regexp) string {
	for line := range strings.SplitSeq(strings.ReplaceAll(body, ",", ",\n"), "\n") {
		line, _, _ = strings.Cut(line, "--")
		if m := column.FindStringSubmatch(line); m != nil && isType.MatchString(line) && !otherAmount.MatchString(m[1]) {
			return m[1]
		}
	}
	return ""
}
