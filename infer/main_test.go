package infer

import (
	"testing"

	"ndls/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.GrowHeap()
	m.Run()
}
