package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"ndls/dataset"
	"ndls/estimate"
	"ndls/export"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/partition"
)

// Exit statuses; exitStatus spells them for the help.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitBudget      = 3
	exitCorrupt     = 4
	exitMismatch    = 5
	exitTerminated  = 75
	exitInterrupted = 130
)

const exitStatus = `

EXIT STATUS
  0    done
  1    error
  2    wrong usage
  3    does not fit the memory budget or the disk
  4    corrupt data
  5    the run directory was made with another plan, or a worker was refused
  75   interrupted by SIGTERM or SIGUSR1; run again to continue
  130  interrupted by the user; run again to continue`

var (
	errInterrupted = errors.New("interrupted by the user; run again to continue")
	errTerminated  = errors.New("interrupted by SIGTERM; run again to continue")
	// errUsage marks what the user must type differently.
	errUsage = errors.New("wrong usage")
)

func main() {
	ctx, stop := notify(context.Background())
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// notify returns a context that the first SIGINT, SIGTERM or SIGUSR1 cancels with its
// cause. A second signal kills the process.
func notify(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s, ok := <-signals
		if !ok {
			return
		}
		signal.Stop(signals)
		if s == os.Interrupt {
			cancel(errInterrupted)
		} else {
			cancel(errTerminated)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		<-stopped
		cancel(nil)
	}
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = fmt.Errorf("%w\nsee %s --help", asUsage(err), cmd.CommandPath())
	}
	if err == nil {
		return exitDone
	}
	code := status(ctx, err)
	if cause := context.Cause(ctx); code == exitTerminated || code == exitInterrupted {
		err = cause
	}
	fmt.Fprintf(stderr, "ndls: %v\n", err)
	return code
}

// usage is an error of errUsage whose text is that of the error alone.
type usage struct{ error }

func (usage) Is(target error) bool { return target == errUsage }
func (u usage) Unwrap() error      { return u.error }

func asUsage(err error) error { return usage{err} }

// status maps an error to an exit status.
func status(ctx context.Context, err error) int {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errInterrupted):
		return exitInterrupted
	case errors.Is(cause, errTerminated):
		return exitTerminated
	}
	for _, c := range []struct {
		target error
		code   int
	}{
		{errUsage, exitUsage},
		{control.ErrOption, exitUsage},
		{export.ErrOption, exitUsage},
		{dataset.ErrURI, exitUsage},
		{partition.ErrSplit, exitUsage},
		{control.ErrPlanMismatch, exitMismatch},
		{control.ErrRefused, exitMismatch},
		{mem.ErrBudget, exitBudget},
		{estimate.ErrDisk, exitBudget},
		{control.ErrUnable, exitBudget},
		{seal.ErrCorrupt, exitCorrupt},
		{dataset.ErrData, exitCorrupt},
	} {
		if errors.Is(err, c.target) {
			return c.code
		}
	}
	return exitError
}
