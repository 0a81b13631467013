package schedule

import "testing"

// TestList: List joins the choices as in a sentence.
func TestList(t *testing.T) {
	one, two := Choice{Token: "1", Name: "UPDATE product"}, Choice{Token: "2", Name: "BEGIN"}
	crash := Choice{Token: "crash1", Name: "crash", Event: "crash"}
	for _, c := range []struct {
		choices []Choice
		want    string
	}{
		{nil, "nothing"},
		{[]Choice{one}, "1 (UPDATE product)"},
		{[]Choice{one, crash}, "1 (UPDATE product) or crash1"},
		{[]Choice{one, two, crash}, "1 (UPDATE product), 2 (BEGIN) or crash1"},
	} {
		if got := List(c.choices); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
