package nearest

import "testing"

func TestUnknown(t *testing.T) {
	t.Parallel()
	names := []string{"none", "redis", "redisson", "redlock", "serializable"}
	for _, c := range []struct{ name, command, want string }{
		{"rediss", "shop strategies", `unknown strategy "rediss" (did you mean "redis"?); list them with: shop strategies`},
		{"nope", "shop strategies", `unknown strategy "nope" (did you mean "none"?); list them with: shop strategies`},
		{"REDIS", "", `unknown strategy "REDIS" (did you mean "redis"?); choose from: none, redis, redisson, redlock, serializable`},
		{"serial", "", `unknown strategy "serial" (did you mean "serializable"?); choose from: none, redis, redisson, redlock, serializable`},
		{"mutex", "shop strategies", `unknown strategy "mutex"; list them with: shop strategies`},
		{"", "shop strategies", `unknown strategy ""; list them with: shop strategies`},
		{"x", "shop strategies", `unknown strategy "x"; list them with: shop strategies`},
	} {
		if got := Unknown("strategy", c.name, names, c.command).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
