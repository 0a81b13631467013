package explore_test

import (
	"testing"

	"github.com/oversell/oversell/internal/explore/exploretest"
)

func TestMain(m *testing.M) { exploretest.Main(m) }
