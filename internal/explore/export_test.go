package explore

// ParseSaved is parseSaved, for a fuzz test.
var ParseSaved = parseSaved
