package process

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Keep()
	os.Exit(m.Run())
}
