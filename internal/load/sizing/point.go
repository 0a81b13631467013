package sizing

import "fmt"

// A Setting describes the shop that serves a closed loop of buyers.
type Setting struct {
	Database  string  `json:"database"`  // value of --local-db; "": the default
	Nodes     int     `json:"nodes"`     // nodes of the database, each with a full copy
	Writers   int     `json:"writers"`   // nodes that shops write to
	Processes int     `json:"processes"` // processes of the shop
	Products  int     `json:"products"`  // each request asks for a random one
	Buyers    int     `json:"buyers"`    // each buyer asks again when it is answered
	DelayMS   float64 `json:"delay_ms"`  // added to each answer of a server
	Records   int64   `json:"records"`   // in purchase_history at the start
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

// A Point is the measurement of one strategy in one setting.
type Point struct {
	Strategy string `json:"strategy"`
	Setting
	PerSecond float64   `json:"per_second"` // sales per second, the median of the rounds
	Rounds    []float64 `json:"rounds"`     // sales per second, in order of time
	Refused   float64   `json:"refused"`    // share of answers without a sale
	CPU       CPU       `json:"cpu_ms"`     // per sale, the median of the rounds
	Others    float64   `json:"others"`     // processors that other programs used
	Servers   Servers   `json:"servers"`    // measured just before the rounds; with a delay, during them
}

// CPU is processor time in milliseconds, user and system.
type CPU struct {
	Database float64 `json:"database"`
	Shop     float64 `json:"shop"`
	Locks    float64 `json:"locks"`  // Redis, ZooKeeper, etcd
	Buyers   float64 `json:"buyers"` // buyers, and the proxies that delay
}

// Total is the sum.
func (c CPU) Total() float64 { return c.Database + c.Shop + c.Locks + c.Buyers }

// Servers has the answer times of idle servers to one client, in milliseconds.
type Servers struct {
	StatementMS float64 `json:"statement_ms"` // round trip of SELECT 1
	CommitMS    float64 `json:"commit_ms"`    // additional time of COMMIT after a write
	RedisMS     float64 `json:"redis_ms"`     // round trip of PING; 0 without Redis
}
