// Package expect reports a wrong result, and the test goes on. Each report begins with the parameter `about`:
// words and values that describe the tested case.
package expect

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Equal reports an error unless got == want.
func Equal[T comparable](t testing.TB, got, want T, about ...any) {
	t.Helper()
	if got != want {
		report(t, about, "got %s, want %s", shown(got), shown(want))
	}
}

// DeepEqual reports an error unless reflect.DeepEqual(got, want), for slices and values that contain slices.
func DeepEqual[T any](t testing.TB, got, want T, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		report(t, about, "got %s, want %s", shown(got), shown(want))
	}
}

// NoError reports an error unless err is nil. If the test cannot go on, use require.NoError.
func NoError(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		report(t, about, "%v", err)
	}
}

// ErrorIs reports an error unless errors.Is(err, want).
func ErrorIs(t testing.TB, err, want error, about ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		report(t, about, "got %v, want %v", err, want)
	}
}

// ErrorOf returns the error of a call that has one other result: expect.NoError(t,
// expect.ErrorOf(os.Stat(path))).
func ErrorOf[T any](_ T, err error) error { return err }

// Contains reports an error unless text contains part.
func Contains(t testing.TB, text, part string, about ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		report(t, about, "%q is missing in %s", part, shown(text))
	}
}

func report(t testing.TB, about []any, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	if len(about) > 0 {
		text = strings.TrimSuffix(fmt.Sprintln(about...), "\n") + ": " + text
	}
	t.Error(text)
}

// shown formats a value as one line, unless the value is a text with several lines.
func shown(value any) string {
	text, isText := value.(string)
	switch {
	case !isText:
		return fmt.Sprintf("%+v", value)
	case strings.Contains(text, "\n"):
		return "\n" + text + "\n"
	}
	return fmt.Sprintf("%q", text)
}
