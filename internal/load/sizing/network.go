package sizing

// A station is a resource that each sale uses, and that buyers wait for.
type station struct {
	name    string
	demand  float64 // ms that a sale needs
	servers float64 // parallel servers, such as processors or connections; above 0
	copies  int     // equal stations, of which a sale visits one, such as products; 0 means 1
	held    bool    // kept while the sale visits other stations, such as a connection; only a bound
}

// throughput returns the sales per millisecond and the use of each station, 0 to 1. Each buyer asks
// again when it is answered. delay is the time of a sale outside the stations, in ms.
//
// It is mean value analysis of a closed network: an arriving buyer finds the queue that the other
// buyers would form without it (Reiser and Lavenberg, "Mean-Value Analysis of Closed Multichain
// Queuing Networks", JACM 27(2), 1980). Little's law gives the queue from the time. The limits are
// the asymptotic bounds: 1/demand of the busiest station, and buyers/time of an empty shop (Denning
// and Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing Surveys 10(3),
// 1978). Several servers count as one server with their total speed, plus a delay (Seidmann,
// Schweitzer and Shalev-Oren, 1987).
func throughput(buyers int, delay float64, stations []station) (perMS float64, use []float64) {
	lines := make([]float64, len(stations)) // summed over all copies
	times := make([]float64, len(stations))
	for n := 1; n <= buyers; n++ {
		total := delay
		for i, s := range stations {
			if s.held {
				continue
			}
			alone := s.demand / s.servers
			times[i] = alone*(1+lines[i]/float64(max(s.copies, 1))) + s.demand - alone
			total += times[i]
		}
		perMS = float64(n) / total
		for i, s := range stations {
			if s.held {
				continue
			}
			lines[i] = max(0, perMS*(times[i]-(s.demand-s.demand/s.servers)))
		}
	}
	for _, s := range stations {
		if s.held {
			perMS = min(perMS, s.servers/s.demand)
		}
	}
	use = make([]float64, len(stations))
	for i, s := range stations {
		use[i] = perMS * s.demand / s.servers / float64(max(s.copies, 1))
	}
	return perMS, use
}
