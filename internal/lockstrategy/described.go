package lockstrategy

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// Texts describe a strategy. Each field is an item of the list in the doc comment of the strategy's type.
type Texts struct {
	Summary    string `json:"summary"` // the algorithm in a few words, for a table
	Guarantees string `json:"guarantees"`
	BreaksWhen string `json:"breaks_when"` // the condition in a few words, for a table

	// HowItBreaks is the long form of BreaksWhen: the steps, or the limit of the guarantee. It is
	// empty if BreaksWhen says everything.
	HowItBreaks string `json:"how_it_breaks,omitempty"`

	Cost   string `json:"cost"`
	Source string `json:"source"`          // author, document, section
	Notes  string `json:"notes,omitempty"` // further facts for a reader of the code
}

//go:embed catalogue.json
var catalogueJSON []byte

// described returns the texts of the strategies by name, from catalogue.json. TestDescribed writes that
// file from the doc comments.
var described = sync.OnceValue(func() (all map[string]Texts) {
	if err := json.Unmarshal(catalogueJSON, &all); err != nil {
		panic("catalogue.json: " + err.Error())
	}
	return all
})
