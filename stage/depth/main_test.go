package depth

import (
	"testing"

	"go.uber.org/goleak"

	"ndls/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.GrowHeap()
	goleak.VerifyTestMain(m)
}
