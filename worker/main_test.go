package worker

import (
	"testing"

	"go.uber.org/goleak"

	"ndls/internal/testheap"
)

func TestMain(m *testing.M) {
	testheap.Grow()
	goleak.VerifyTestMain(m)
}
