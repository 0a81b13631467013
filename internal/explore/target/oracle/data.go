package oracle

// Data are the tables of the databases and the keys of Redis, by name.
type Data map[string]*Table

// A Table is the content of one table. Redis is one table with a row for each key.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// A Column is a column of a Table.
type Column struct {
	Name string
	// Key is set if the column contains keys that the server generates. It is the column for which they were generated,
	// such as "orders.id": this column, or the one that it references.
	Key string
}

// Null is the value of a cell without a value.
const Null = "NULL"
