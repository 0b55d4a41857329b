// Package supervise keeps a process of this host going: it starts the process
// again when that was killed, and gives up when another attempt would not help.
//
// # Model
//
// The process is told to stop with SIGTERM and has a minute to do so. It is killed
// when the process that started it dies.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	// mostRestarts is the number of times that a process that died is started again.
	mostRestarts = 5
	// restartPause gives what killed the process time to pass.
	restartPause = time.Second
	// stopTime is the time that a process may take to stop when told to.
	stopTime = time.Minute
	// endTime is the time that a process may take to end by itself after serving has ended.
	endTime = 2 * time.Second
)

// Keep runs the process that command makes until it ends well or serving ends. It tells the
// process to stop when ctx ends, and when that still runs two seconds after serving has ended: it
// may never have met whom it waits for. Keep returns an error when the process ends with a
// status of which again says that another attempt is of no use, or when it dies
// too often.
func Keep(ctx, serving context.Context, again func(status int) bool, command func(context.Context) *exec.Cmd) error {
	// A process whose parent dies is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	running, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(serving, func() { time.AfterFunc(endTime, stop) })()
	for restarts := 0; ; restarts++ {
		cmd := command(running)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = stopTime
		err := cmd.Run()
		if err == nil || ctx.Err() != nil || serving.Err() != nil {
			return nil
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return fmt.Errorf("a worker process: %w", err)
		}
		if restarts == mostRestarts || !again(exit.ExitCode()) {
			return &Ended{Status: exit.ExitCode(), err: err}
		}
		select {
		case <-time.After(restartPause):
		case <-ctx.Done():
		case <-serving.Done():
		}
	}
}

// Ended reports a process that is not started again.
type Ended struct {
	// Status is the exit status of the process, -1 if a signal ended it.
	Status int
	err    error
}

func (e *Ended) Error() string { return fmt.Sprintf("a worker process failed: %v", e.err) }

// Unwrap returns the error of the process.
func (e *Ended) Unwrap() error { return e.err }
