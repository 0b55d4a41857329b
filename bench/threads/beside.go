package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"ndls"
	"ndls/coordinator"
)

// alone makes one run with one thread on a core. It waits for a line of the standard input
// before each stage, and prints the seconds of the stage after it.
func (b bench) alone(ctx context.Context, core int) error {
	if err := pin(core, 1); err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	_, err := b.each(ctx, 1, func(_ ndls.Stage, do func() (coordinator.StageRecord, error)) error {
		if _, err := in.ReadString('\n'); err != nil {
			return err
		}
		r, err := do()
		if err != nil {
			return err
		}
		return out.Encode(r.Seconds)
	})
	return err
}

// neighbour is a process that makes a run with one thread.
type neighbour struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// sideBySide makes as many runs as the last number of threads at the same time, each in a process
// with one thread on a core of its own. Each stage begins when all have ended the one before, and
// its seconds are the slowest run's.
func (b bench) sideBySide() (err error) {
	var runs []*neighbour
	defer func() {
		for _, n := range runs {
			n.in.Close()
			err = errors.Join(err, n.cmd.Wait())
		}
	}()
	for core := range b.threads[len(b.threads)-1] {
		n, err := b.start(core)
		if err != nil {
			return err
		}
		runs = append(runs, n)
	}
	for _, s := range stages() {
		for _, n := range runs {
			if _, err := fmt.Fprintln(n.in); err != nil {
				return err
			}
		}
		slowest := 0.0
		for _, n := range runs {
			var seconds float64
			if err := n.out.Decode(&seconds); err != nil {
				return fmt.Errorf("%s of a run beside others: %w", s, err)
			}
			slowest = max(slowest, seconds)
		}
		b.together[s] = append(b.together[s], slowest)
	}
	return nil
}

// start starts the process whose run has the core.
func (b bench) start(core int) (*neighbour, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-core", strconv.Itoa(core), "-dataset", b.dataset, "-dir", b.dir,
		"-memory", strconv.FormatFloat(b.memory, 'g', -1, 64), "-probes", strconv.Itoa(b.probes), "-epochs", strconv.Itoa(b.epochs))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &neighbour{cmd: cmd, in: in, out: json.NewDecoder(out)}, nil
}
