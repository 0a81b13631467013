package app

import _ "embed"

//go:embed example.yaml
var example string

// Example is a file with comments, to begin with.
func Example() string { return example }
