// Command lab, built as ndls-lab, measures the loops and files that runs of ndls consist of, and
// makes the tables and figures of the paper: `ndls bench` and `ndls reproduce` call it. It is no
// part of a release.
//
// stdout carries results, stderr progress and logs. The exit statuses equal those of ndls.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/progress"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // a second signal kills the process
		if s == os.Interrupt {
			cancel(ndls.ErrInterrupted)
		} else {
			cancel(ndls.ErrTerminated)
		}
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = asUsage(fmt.Errorf("%w\nusage: %s", err, cmd.UseLine()))
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ndls.ErrInterrupted) {
		err = cause
	}
	if err != nil {
		fmt.Fprintf(stderr, "ndls-lab: %s\n", ndls.Message(err))
	}
	return ndls.ExitStatus(err)
}

// asUsage marks what the user must type differently.
func asUsage(err error) error { return failure.As(ndls.ErrOption, err) }

// app is one command line being executed.
type app struct {
	stdout, stderr io.Writer
	// started is false as long as what failed is the command line itself.
	started bool
	log     *slog.Logger

	runDir   string
	memory   string
	threads  int
	scratch  string
	kernel   string
	logLevel string
	json     bool
	quiet    bool
	// memoryBytes is --memory, 0 for the default.
	memoryBytes int64
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "ndls-lab COMMAND", Short: "measurements of ndls, and the tables and figures of the paper", Version: ndls.Version,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return readEnvironment(cmd) },
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	f := root.PersistentFlags()
	f.StringVar(&a.memory, "memory", "", "hard limit for heap, arrays and page cache, such as 8GiB (default 3/4 of what is available, at most 8GiB)")
	f.IntVar(&a.threads, "threads", runtime.GOMAXPROCS(0), "threads that compute")
	f.StringVar(&a.scratch, "scratch", "", "local folder for temporary files")
	f.StringVar(&a.kernel, "kernel", "auto", "kernel of the passes: auto, avx512, avx2 or go")
	f.StringVar(&a.logLevel, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&a.json, "json", false, "one JSON object a line on stdout")
	f.BoolVar(&a.quiet, "quiet", false, "no progress, and of the log warnings and errors only; results are printed")
	bench := &cobra.Command{Use: "bench", Short: "measurements of this machine", Long: "bench measures the loops that a run consists of.", Args: cobra.NoArgs}
	bench.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	bench.AddCommand(a.benchKernelCommand(), a.benchStreamCommand(), a.benchShardsCommand(), a.benchTrainCommand())
	root.AddCommand(bench, a.reproduceCommand())
	return root
}

// readEnvironment sets every flag of cmd that the command line does not set and whose variable, such as NDLS_MEMORY, has
// a value.
func readEnvironment(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := ndls.Variable(f.Name)
		if value := os.Getenv(name); err == nil && value != "" && !f.Changed && f.Name != "help" && f.Name != "version" {
			if err = cmd.Flags().Set(f.Name, value); err != nil {
				err = fmt.Errorf("the environment variable %s: %w", name, err)
			}
		}
	})
	return err
}

// command makes a verb. do gets a context whose meters are shown, and the logger is set.
func (a *app) command(use, short, long string, do func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.started = true
			level, err := a.checkCommon()
			if err != nil {
				return asUsage(err)
			}
			if a.memoryBytes != 0 {
				if err := mem.CheckTotal(a.memoryBytes); err != nil {
					return err
				}
			}
			runtime.GOMAXPROCS(a.threads + 1) // as ndls has it: one goes on with what has been read
			ctx, logs := cmd.Context(), a.stderr
			if !a.quiet {
				display := progress.NewDisplay(a.stderr, nil)
				defer display.Close()
				ctx, logs = progress.WithSink(ctx, display), display
			}
			a.log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level, ReplaceAttr: brief}))
			return do(ctx, args)
		},
	}
}

// checkCommon reads the values of the flags that all verbs have, and returns the level of the log.
func (a *app) checkCommon() (level slog.Level, err error) {
	if a.threads < 1 {
		return level, fmt.Errorf("--threads %d is less than 1", a.threads)
	}
	if kernels := []string{"auto", "avx512", "avx2", "go"}; !slices.Contains(kernels, a.kernel) {
		return level, fmt.Errorf("--kernel %q is none of %q", a.kernel, kernels)
	}
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return level, fmt.Errorf("--log-level %q is none of debug, info, warn, error", a.logLevel)
	}
	if a.quiet {
		level = max(level, slog.LevelWarn)
	}
	if a.memory != "" {
		if a.memoryBytes, err = mem.ParseBytes(a.memory); err != nil {
			return level, fmt.Errorf("--memory %w", err)
		}
	}
	return level, nil
}

// brief rounds times and seconds to what a reader of the log can use, and leaves secrets of URIs out.
func brief(_ []string, attr slog.Attr) slog.Attr {
	switch attr.Value.Kind() {
	case slog.KindTime:
		return slog.String(attr.Key, attr.Value.Time().Format(time.TimeOnly))
	case slog.KindString:
		return slog.String(attr.Key, failure.Redact(attr.Value.String()))
	case slog.KindFloat64:
		return slog.String(attr.Key, strconv.FormatFloat(attr.Value.Float64(), 'f', 1, 64))
	}
	return attr
}

// resources are those that the flags give.
func (a *app) resources() ndls.Resources {
	return ndls.Resources{Memory: a.memoryBytes, Threads: a.threads, Scratch: a.scratch, Kernel: a.kernel}
}

// budget is a budget of --memory.
func (a *app) budget() (*mem.Budget, error) { return a.resources().Budget() }

// lineOr prints v as a line of JSON with --json, and the text without.
func (a *app) lineOr(v any, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if a.json {
		line, err := json.Marshal(v)
		if err != nil {
			return err
		}
		text = string(line) + "\n"
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}
