package tune

import (
	"testing"

	"ndls/internal/testheap"
)

func TestMain(m *testing.M) {
	testheap.Grow()
	m.Run()
}
