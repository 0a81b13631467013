package lockstrategy

import (
	_ "embed"
	"encoding/json"
	"sync"

	"github.com/oversell/oversell/internal/load/sizing"
)

// Texts describe a strategy. Each is an item of the list in the doc comment of the strategy's type.
type Texts struct {
	Summary    string `json:"summary"` // the algorithm in a few words, for a table
	Guarantees string `json:"guarantees"`
	BreaksWhen string `json:"breaks_when"` // in a few words, for a table

	// HowItBreaks is the long form of BreaksWhen: the steps, or the limit of the guarantee. It is
	// empty if BreaksWhen says everything.
	HowItBreaks string `json:"how_it_breaks,omitempty"`

	Cost   string `json:"cost"`
	Source string `json:"source"`          // author, document, section
	Notes  string `json:"notes,omitempty"` // further facts for a reader of the code
}

// A description is the generated part of an entry: the texts from the comment of its type, and the
// path that a test counts from what the servers received.
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
