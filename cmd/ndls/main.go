package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/failure"
)

func main() {
	signal.Ignore(syscall.SIGXFSZ) // a write beyond ulimit -f is an error, and no dump
	ctx, stop := notify(context.Background())
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// notify returns a context that the first SIGINT, SIGTERM, SIGUSR1 or SIGHUP cancels with
// its cause. A second signal kills the process.
func notify(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1)
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s, ok := <-signals
		if !ok {
			return
		}
		signal.Stop(signals)
		if signal, ok := s.(syscall.Signal); ok && signal != syscall.SIGINT {
			cancel(ndls.TerminatedBy(signal))
		} else {
			cancel(ndls.ErrInterrupted)
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
	begun := time.Now()
	out := &checked{w: stdout}
	a := newApp(out, stderr)
	root := a.root()
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		complete(root)
	}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = wrongUsage(cmd, err)
	}
	if err == nil && out.err != nil {
		err = fmt.Errorf("writing the results: %w", out.err)
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ndls.ErrInterrupted) {
		err = cause
	}
	if a.resultFile == "" && err != nil && !a.started {
		a.resultFile = givenResult(args)
	}
	if failed := a.writeVerdict(cmd.CommandPath(), begun, err); failed != nil && err == nil {
		err = failed
	}
	if err != nil && !errors.Is(err, ndls.ErrDiffer) {
		message := io.Writer(stderr)
		if width := columns(stderr); width != nil {
			message = newFolding(stderr, width)
		}
		fmt.Fprintf(message, "ndls: %s\n", ndls.Message(err))
	}
	return ndls.ExitStatus(err)
}

// checked is a writer that retains the first error: results are printed without
// looking at errors, and must not be lost in silence.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// asUsage marks what the user must type differently.
func asUsage(err error) error { return failure.As(ndls.ErrOption, err) }
