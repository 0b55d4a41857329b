package main

import (
	"bytes"
	"context"
	"errors"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ndls/internal/control/rpc"
)

// TestHangupStops: a closed terminal stops a run as SIGTERM does, unless nohup has
// arranged otherwise.
func TestHangupStops(t *testing.T) {
	for _, ignored := range []bool{false, true} {
		if ignored {
			signal.Ignore(syscall.SIGHUP)
			defer signal.Reset(syscall.SIGHUP)
		}
		ctx, stop := notify(t.Context())
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			if ignored || !errors.Is(context.Cause(ctx), errTerminated) || status(ctx, ctx.Err()) != exitTerminated {
				t.Errorf("ignored %v, cause %v", ignored, context.Cause(ctx))
			}
		case <-time.After(300 * time.Millisecond):
			if !ignored {
				t.Error("the signal was not heard")
			}
		}
		stop()
	}
}

// TestOpenTokenIsRefusedAtOnce: a coordinator that may not listen where it was told says
// why, and nothing else.
func TestOpenTokenIsRefusedAtOnce(t *testing.T) {
	t.Setenv(rpc.TokenVariable, rpc.MakeToken())
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{
		"coordinator", "--dataset", "karate:", "--run", filepath.Join(t.TempDir(), "run"), "--listen", "0.0.0.0:0", "--quiet",
	}, &out, &errs)
	if text := errs.String(); code != exitMismatch || strings.Contains(text, "context canceled") || !strings.Contains(text, "--listen") || strings.Count(text, "\n") != 1 {
		t.Errorf("status %d\n%s", code, text)
	}
}
