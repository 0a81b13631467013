package sizing

// A station is a place that buyers go through for each sale, and wait at.
type station struct {
	name    string
	demand  float64 // ms of it that a sale needs
	servers float64 // that work side by side: processors, connections; above 0
	copies  int     // stations of this kind, of which a sale visits one: products; 0 is 1
	held    bool    // taken along to the others, a connection: it takes no time of its own, and is a bound
}

// throughput is the sales a millisecond of so many buyers who each ask again when they are
// answered, and the use of each station, 0 to 1. delay is what a sale takes beside the
// stations, in ms.
//
// It is mean value analysis of a closed network: a buyer who comes to a station finds the
// line that there would be without him (Reiser and Lavenberg, "Mean-Value Analysis of
// Closed Multichain Queuing Networks", JACM 27(2), 1980). Little's law gives the line from
// the time; both asymptotic bounds, 1/demand of the busiest station and buyers/time of an
// empty shop, are its limits (Denning and Buzen, "The Operational Analysis of Queueing
// Network Models", ACM Computing Surveys 10(3), 1978). Several servers are one that is as
// fast as all of them, and the rest of the time a delay (Seidmann, Schweitzer and
// Shalev-Oren, 1987).
func throughput(buyers int, delay float64, stations []station) (perMS float64, use []float64) {
	lines := make([]float64, len(stations)) // at all copies together
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
