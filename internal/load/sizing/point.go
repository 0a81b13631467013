package sizing

import "fmt"

// A Setting is where a closed loop of buyers was, or is to be, served.
type Setting struct {
	Database  string  `json:"database"`  // what --local-db took; "" for the default
	Nodes     int     `json:"nodes"`     // of the database, each with a copy of everything
	Writers   int     `json:"writers"`   // of Nodes those that shops write to
	Processes int     `json:"processes"` // of the shop
	Products  int     `json:"products"`  // each buyer asks for one of them, drawn anew each time
	Buyers    int     `json:"buyers"`    // each asks again when it is answered
	DelayMS   float64 `json:"delay_ms"`  // put before each answer of a server, on top of RTTMS
	Records   int64   `json:"records"`   // in purchase_history before it began
}

func (s Setting) String() string {
	text := fmt.Sprintf("%d processes, %d products, %g ms", s.Processes, s.Products, s.DelayMS)
	if s.Nodes > 1 {
		text += fmt.Sprintf(", %d of %d nodes", s.Writers, s.Nodes)
	}
	if s.Records > 0 {
		text += fmt.Sprintf(", %d records", s.Records)
	}
	return text
}

// A Point is what was measured there.
type Point struct {
	Strategy string `json:"strategy"`
	Setting
	PerSecond float64   `json:"per_second"` // sales, the median of the rounds
	Rounds    []float64 `json:"rounds"`     // in the order in which they were played
	Refused   float64   `json:"refused"`    // share of the answers that were no sale
	CPU       CPU       `json:"cpu_ms"`     // a sale, the median of the rounds
	Others    float64   `json:"others"`     // processors that others on the machine used meanwhile
	Servers   Servers   `json:"servers"`    // as they answered just before; with a delay, meanwhile
}

// CPU is processor time in milliseconds, user and system.
type CPU struct {
	Database float64 `json:"database"`
	Shop     float64 `json:"shop"`
	Locks    float64 `json:"locks"`  // Redis, ZooKeeper, etcd
	Buyers   float64 `json:"buyers"` // who ask, and the proxies that delay
}

// Total is the sum.
func (c CPU) Total() float64 { return c.Database + c.Shop + c.Locks + c.Buyers }

// Servers is how long those answer who are asked by one client alone, in milliseconds.
type Servers struct {
	StatementMS float64 `json:"statement_ms"` // SELECT 1, there and back
	CommitMS    float64 `json:"commit_ms"`    // what COMMIT of a written row takes above that
	RedisMS     float64 `json:"redis_ms"`     // PING, there and back; 0 without Redis
}
