package supervise

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// TestNobodyToServe ends serving before the process has met anybody: Keep does not wait for it.
func TestNobodyToServe(t *testing.T) {
	serving, end := context.WithCancel(t.Context())
	begun := time.Now()
	time.AfterFunc(50*time.Millisecond, end)
	err := Keep(t.Context(), serving, func(int) bool { return true }, func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, "sleep", "30")
	})
	if took := time.Since(begun); err != nil || took > 15*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}
