package lockstrategy

import (
	_ "embed"
	"encoding/json"
	"sync"

	"github.com/oversell/oversell/internal/load/sizing"
)

// Texts describe a strategy. They are written in the doc comment of its type, as a list.
type Texts struct {
	Summary    string `json:"summary"` // what it does, for a table
	Guarantees string `json:"guarantees"`
	BreaksWhen string `json:"breaks_when"` // in a few words, for a table

	// HowItBreaks is BreaksWhen at length: step by step, or at what border the guarantee
	// ends. It is empty if BreaksWhen says all.
	HowItBreaks string `json:"how_it_breaks,omitempty"`

	Cost   string `json:"cost"`
	Source string `json:"source"`          // author, document, section
	Notes  string `json:"notes,omitempty"` // what a reader of the code must know besides
}

// A description is what is generated about a strategy: its texts from the comment of its type,
// and its path from what the servers have received in a test.
type description struct {
	Texts
	Path sizing.Path `json:"path"`
}

//go:embed catalogue.json
var catalogueJSON []byte

// described returns the descriptions by name. TestDescribed writes them.
var described = sync.OnceValue(func() (all map[string]description) {
	if err := json.Unmarshal(catalogueJSON, &all); err != nil {
		panic("catalogue.json: " + err.Error())
	}
	return all
})
