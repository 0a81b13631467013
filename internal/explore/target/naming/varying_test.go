package naming

import (
	"strings"
	"testing"
)

// TestVarying: a value that differs between two runs is masked in a third run; other values are not.
func TestVarying(t *testing.T) {
	for _, c := range []struct{ name, one, other, third, want string }{
		{"a ULID", "INSERT INTO a VALUES ('01ARZ3NDEKTSV4RRFFQ69G5FAV', 1)", "INSERT INTO a VALUES ('01BX5ZZKBKACTAV9WEVGEMMVRZ', 1)", "INSERT INTO a VALUES ('01CQ9VZ1M3K4N5P6Q7R8S9T0V1', 2)", "INSERT INTO a VALUES ('?', 2)"},
		{"a nanoid", "GET cart:V1StGXR8_Z5jdHi6B-myT", "GET cart:3z4m-xZ_abcdefghijklm", "GET cart:abcdefghijklmnopqrstu", "GET cart:?"},
		{"Math.random().toString(36)", "SELECT '0.4fzyo82mvyr'", "SELECT '0.7qk2jx9wz1'", "SELECT '0.abcd'", "SELECT '0.?'"},
		{"a counter in JSON", `INSERT INTO a VALUES ('{"seq": 7, "stock": 1}')`, `INSERT INTO a VALUES ('{"seq": 8, "stock": 1}')`, `INSERT INTO a VALUES ('{"seq": 31, "stock": 0}')`, `INSERT INTO a VALUES ('{"seq": ?, "stock": 0}')`},
		{"an alias with a hash", "SELECT a.id AS a_x7f3 FROM a", "SELECT a.id AS a_k2p9 FROM a", "SELECT a.id AS a_zzzz FROM a", "SELECT a.id AS ? FROM a"},
		{"base64, whose words differ in number", "SELECT 'ab+c/d=='", "SELECT 'abcdef/='", "SELECT 'a/b/c/d='", "SELECT ?"},
		{"a value with an apostrophe", "SELECT 'ab''c'", "SELECT 'abcd'", "SELECT 'it''s''q'", "SELECT ?"},
		{"another statement", "SELECT x1 FROM a", "SELECT x2 FROM a", "SELECT x3 FROM b", "SELECT x3 FROM b"},
		{"other punctuation", "SELECT x1 FROM a", "SELECT x2 FROM a", "SELECT x3, FROM a", "SELECT x3, FROM a"},
		{"the shop's state", "UPDATE a SET stock = 1, by = 'x81'", "UPDATE a SET stock = 1, by = 'q02'", "UPDATE a SET stock = 0, by = 'z77'", "UPDATE a SET stock = 0, by = '?'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v Varying
			if !v.Learn(PlaceOf(c.one, ""), c.one, c.other) {
				t.Fatal("the difference cannot be masked")
			}
			if got := v.mask(PlaceOf(c.third, ""), c.third, func(string) string { return "?" }); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if got := v.mask(place{statement: "x"}, c.third, func(string) string { return "?" }); got != c.third {
				t.Errorf("%s, in another place", got)
			}
		})
	}
	for one, other := range map[string]string{"SELECT [1,2]": "SELECT [1,2,3]", "SELECT a": "SELECT a, b", "x+y": "x-y"} {
		var v Varying
		if v.Learn(place{}, one, other) || len(v.shapes) > 0 {
			t.Errorf("%s and %s: learned %v", one, other, v.shapes)
		}
	}
}

// TestFits: a learned place is found even if other values have got names since.
func TestFits(t *testing.T) {
	var v Varying
	v.Learn(place{}, "INSERT 'k8s2' 'p0q1' 7", "INSERT 'a1b2' 'c3d4' 7")
	if got := v.mask(place{}, "INSERT '<orders.1>' 'zz99' 7", strings.ToUpper); got != "INSERT '<orders.1>' 'ZZ99' 7" {
		t.Error(got)
	}
}
