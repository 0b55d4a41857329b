package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"ndls"

	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/control/rpc"
)

// TestHangupStops: a closed terminal stops a run as SIGTERM does, unless nohup has
// arranged otherwise.
func TestHangupStops(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // nohup may have started the tests
	signal.Stop(heard)
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
			if ignored || !errors.Is(context.Cause(ctx), ndls.ErrTerminated) || ndls.ExitStatus(context.Cause(ctx)) != ndls.ExitTerminated ||
				ndls.Message(context.Cause(ctx)) != "interrupted by SIGHUP; run again to continue" {
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

// TestStatusOfAKilledCoordinator: the address in the run directory leads nowhere.
func TestStatusOfAKilledCoordinator(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	expect(t, 0, "", append([]string{"partition", "--dataset", toy, "--run", dir}, "--memory", "512MiB", "--quiet")...)
	at := filepath.Join(dir, "cluster", "coordinator.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(`{"address":"127.0.0.1:1"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv(rpc.TokenVariable, rpc.MakeToken())
	expect(t, 0, ": the run is COMPLETE", "status", "--run", dir)
	if r := expect(t, 0, "", "status", "--run", dir); !regexp.MustCompile(`(?m)^  partition  COMPLETE  \S`).MatchString(r.stdout) {
		t.Errorf("no list of stages:\n%s", r.stdout)
	}
}

// TestStatusShowsRates: what a worker takes, and how fast its task goes, where that is known.
func TestStatusShowsRates(t *testing.T) {
	var out bytes.Buffer
	st := coordinator.Status{Workers: []coordinator.WorkerStatus{
		{Name: "new", Memory: 4 << 30, Threads: 2},
		{Name: "busy", Memory: 4 << 30, Threads: 2, Task: "smooth", Usage: control.Usage{Memory: 3 << 30}, Speed: coordinator.Speed{Read: 1.5 * (1 << 30), Written: 2 << 20, Edges: 161e6}},
	}}
	if err := printStatus(&out, st); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`worker +seen +memory +threads +edges/s +read/s +written/s +task +progress +losses`,
		`new +lost +4.0 GiB +2 +0`,
		`busy +lost +3.0 GiB of 4.0 GiB +2 +161.0 M +1.5 GiB +2.0 MiB +smooth +0`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("no line %s in\n%s", want, &out)
		}
	}
	// On a terminal, also with --watch, columns that have no space stand below the others.
	out.Reset()
	if err := printStatus(&folding{w: &out, columns: func() int { return 79 }}, st); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("a line of %d characters: %q", utf8.RuneCountInString(line), line)
		}
	}
	if !strings.Contains(out.String(), "losses") {
		t.Errorf("a column is cut off:\n%s", &out)
	}
}

// TestStatusShowsPlainText: what a worker says of itself does not steer the terminal.
func TestStatusShowsPlainText(t *testing.T) {
	var out bytes.Buffer
	st := coordinator.Status{Workers: []coordinator.WorkerStatus{{
		Name: "a\x1b[2Jb", Task: "lsi\r", Progress: control.Progress{What: "hops\x07", Done: 1, Total: 2},
	}}}
	if err := printStatus(&out, st); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\r\x07") || !strings.Contains(out.String(), "a\ufffd[2Jb") {
		t.Errorf("%q", &out)
	}
}
