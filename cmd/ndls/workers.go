package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"ndls/coordinator"
	"ndls/internal/control/rpc"
	"ndls/internal/mem"
)

const (
	// mostRestarts is how often a worker process that died is started again.
	mostRestarts = 5
	// restartPause lets what killed a worker pass.
	restartPause = time.Second
	// farewell is how long a worker that is told to stop may take to do so.
	farewell = time.Minute
)

// local runs the stages with worker processes on this machine, which share memory
// and threads.
func (v *stageVerb) local(ctx context.Context, workers int, parallel string) error {
	memory, err := v.memoryBytes()
	if err != nil {
		return err
	}
	// The coordinator computes nothing; it has what every process of Go takes.
	share := (memory - mem.RuntimeShare) / int64(workers)
	if share < mem.MinBudget {
		return fmt.Errorf("--workers %d: %s of --memory leave %s for each; %s are the least: %w",
			workers, mem.Bytes(memory), mem.Bytes(max(share, 0)), mem.Bytes(mem.MinBudget), mem.ErrBudget)
	}
	token := rpc.MakeToken()
	security, err := rpc.TokenSecurity(token, "memory")
	if err != nil {
		return err
	}
	f := &coordinatorFlags{listen: loopback, gossip: loopback, options: coordinator.Options{Workers: workers, Log: v.log}}
	r, err := v.begin(ctx, f.options)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.share(parallel, workers); err != nil {
		return err
	}
	threads := max(v.threads/workers, 1)
	r.job.Resources.Memory, r.job.Resources.Threads, r.job.Resources.BlockColumns = share, threads, v.blockColumns
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--workers: %w", err)
	}
	args := []string{
		"worker", "--run", v.runDir, "--memory", strconv.FormatInt(share, 10), "--threads", strconv.Itoa(threads),
		"--block-columns", strconv.Itoa(v.blockColumns),
		"--kernel", v.kernel, "--log-level", v.logLevel, "--quiet",
	}
	if v.scratch != "" {
		args = append(args, "--scratch", v.scratch)
	}
	var group errgroup.Group
	rec, err := r.serve(ctx, f, security, func(serving context.Context, address string) error {
		// Children are told to stop with this process, and are gone when the run is over.
		for range workers {
			group.Go(func() error {
				return keep(ctx, serving, func(ctx context.Context) *exec.Cmd {
					cmd := exec.CommandContext(ctx, program, append(args, "--coordinator", address)...)
					cmd.Env = append(os.Environ(), rpc.TokenVariable+"="+token)
					cmd.Stderr = v.stderr
					return cmd
				})
			})
		}
		return group.Wait()
	})
	if err != nil {
		return err
	}
	return v.print(ctx, rec, r.job.Catalog)
}

// keep keeps a worker process going until the run has ended, or ctx does, which
// makes it stop. It gives up when the process fails in a way that another would
// too, or too often.
func keep(ctx, serving context.Context, command func(context.Context) *exec.Cmd) error {
	// A process whose parent dies is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for restarts := 0; ; restarts++ {
		cmd := command(ctx)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = farewell
		err := cmd.Run()
		if err == nil || ctx.Err() != nil || serving.Err() != nil {
			return nil
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return fmt.Errorf("a worker process: %w", err)
		}
		if status := exit.ExitCode(); restarts == mostRestarts || status > exitError && status != exitTerminated {
			return fmt.Errorf("a worker process failed: %w", err)
		}
		select {
		case <-time.After(restartPause):
		case <-ctx.Done():
		case <-serving.Done():
		}
	}
}
