package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ndls/internal/testkit"
)

// outcome holds what a process reported of itself, and what was observed of it. The fields that
// peers print match peer.py.
type outcome struct {
	Version string             `json:"version"`
	Seconds map[string]float64 `json:"seconds"`
	Rates   []float64          `json:"rates"`
	Sample  [][2]float64       `json:"sample"`
	Edges   int64              `json:"edges"`
	Sums    []uint64           `json:"sums"`

	// Peak is the largest resident size in bytes.
	Peak int64 `json:"-"`
	// Died says how and in what phase; "" if all went well.
	Died string `json:"-"`
	// Wall is the time of everything.
	Wall time.Duration `json:"-"`
}

// whole adds up the phases.
func (o outcome) whole() (sum float64) {
	for _, s := range o.Seconds {
		sum += s
	}
	return sum
}

// process is a command and what its environment has more than ours.
type process struct{ command, env []string }

// jail bounds processes.
type jail struct {
	memory int64
	time   time.Duration
	// groups says that control groups can be made. Else address space is limited,
	// which peers reserve more of than they use.
	groups bool
}

func newJail(memory int64, limit time.Duration) jail {
	probe, err := testkit.NewGroup(memory)
	if err == nil {
		probe.Remove()
	}
	return jail{memory: memory, time: limit, groups: err == nil}
}

// how says by what means memory is limited.
func (j jail) how() string {
	if !j.groups {
		return "address space (RLIMIT_AS)"
	}
	return "control group, page cache included"
}

// run runs a process to its end, hands on each line that is no phase, and returns
// the process's peak memory and how it died, if it did.
func (j jail) run(ctx context.Context, p process, lines func([]byte) error) (peak int64, died string) {
	limited, cancel := context.WithTimeout(ctx, j.time)
	defer cancel()
	command := append([]string{"sh", "-c", fmt.Sprintf(`ulimit -v %d && exec "$@"`, j.memory>>10), "sh"}, p.command...)
	if j.groups {
		group, err := testkit.NewGroup(j.memory)
		if err != nil {
			return 0, err.Error()
		}
		defer group.Remove()
		command = group.Command(p.command...)
	}
	cmd := exec.CommandContext(limited, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return 0, err.Error()
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = usage.Maxrss << 10
	}
	phase := ""
	for line := range bytes.Lines(out.Bytes()) {
		var begun struct{ Phase string }
		if json.Unmarshal(line, &begun) == nil && begun.Phase != "" {
			phase = begun.Phase
		} else if err == nil {
			err = lines(line)
		}
	}
	switch {
	case err == nil:
		return peak, ""
	case limited.Err() != nil:
		return peak, in(phase, "stopped after "+j.time.String())
	}
	return peak, in(phase, reason(err, errs.String()))
}

// measure runs a peer, whose last line is its outcome.
func (j jail) measure(ctx context.Context, p process) (o outcome) {
	start := time.Now()
	peak, died := j.run(ctx, p, func(line []byte) error { return json.Unmarshal(line, &o) })
	o.Peak, o.Died, o.Wall = peak, died, time.Since(start)
	return o
}

func in(phase, how string) string {
	if phase == "" {
		return how
	}
	return how + " in “" + phase + "”"
}

// reason says why a process failed: killed, as the kernel does at the limit, or by
// its own last words.
func reason(err error, errs string) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return "out of memory, killed"
	}
	lower := strings.ToLower(errs)
	for _, sign := range []string{"memoryerror", "bad_alloc", "out of memory", "not enough memory", "can't allocate memory", "sigkill"} {
		if strings.Contains(lower, sign) {
			return "out of memory by its own account"
		}
	}
	last := strings.TrimSpace(errs)
	return strings.TrimSpace(fmt.Sprintf("failed: %v %s", err, last[strings.LastIndexByte(last, '\n')+1:]))
}

// output runs a command without limits.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, errs.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
