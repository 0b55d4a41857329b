package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ndls/internal/progress"
)

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
	config   string
	logLevel string
	json     bool
	quiet    bool
	resume   bool

	cache, cacheSize string
	// logs is where log lines go.
	logs io.Writer
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ndls",
		Short: "Node dependent local smoothing of graphs that do not fit in memory",
		Long: `ndls smooths the features and labels of a graph, each node over as many hops
as it takes to come near the stationary state, and trains a classifier in
between. Memory is a budget: edges and wide rows stay on disk.` + exitStatus,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return a.readConfig(cmd)
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	f := root.PersistentFlags()
	f.StringVar(&a.memory, "memory", "", "hard limit for heap, arrays and page cache, such as 8GiB (default 3/4 of what is available, at most 8GiB)")
	f.IntVar(&a.threads, "threads", processors, "threads that compute")
	f.StringVar(&a.scratch, "scratch", "", "local folder for temporary files (default RUN/scratch)")
	f.StringVar(&a.kernel, "kernel", "auto", "kernel of the passes: auto, avx512, avx2 or go; never changes results")
	f.StringVar(&a.config, "config", "", "YAML file with a key for each flag; flags on the command line win")
	f.StringVar(&a.logLevel, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&a.json, "json", false, "one JSON object a line on stdout")
	f.BoolVar(&a.quiet, "quiet", false, "no progress, warnings and errors only")
	root.AddCommand(
		a.runCommand(), a.partitionCommand(), a.lsiCommand(), a.smoothCommand(), a.trainCommand(),
		a.smoothLabelsCommand(), a.evaluateCommand(), a.planCommand(), a.generateCommand(), a.exportCommand(),
		a.inspectCommand(), a.verifyCommand(), a.gcCommand(), a.benchCommand(), a.versionCommand(),
		a.coordinatorCommand(), a.workerCommand(), a.statusCommand(), a.clusterKeysCommand(), datasetsTopic(),
	)
	return root
}

// processors is how many threads may run at a time, unless --threads says
// otherwise.
var processors = runtime.GOMAXPROCS(0)

// waiting is how many threads beside those that compute may go on when what they
// read has come. Without one a read that has ended waits for a computing thread to
// pause, and the next one is not asked for; with more of them, they take time from
// those that compute.
const waiting = 1

// command makes a verb without arguments. do gets a context whose meters are
// shown, and the logger is set.
func (a *app) command(use, short, long string, do func(ctx context.Context, cmd *cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long + exitStatus, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.started = true
			if err := a.checkCommon(); err != nil {
				return asUsage(err)
			}
			runtime.GOMAXPROCS(a.threads + waiting)
			var logs io.Writer = a.stderr
			ctx := cmd.Context()
			if !a.quiet {
				display := progress.NewDisplay(a.stderr, isTerminal(a.stderr))
				defer display.Close()
				ctx = progress.WithSink(ctx, display)
				logs = display
			}
			a.logs = logs
			a.log = a.logger(a.level())
			// What libraries print by themselves comes back as errors, too.
			log.SetFlags(0)
			log.SetOutput(slog.NewLogLogger(a.log.Handler(), slog.LevelDebug).Writer())
			return do(ctx, cmd)
		},
	}
}

func (a *app) checkCommon() error {
	if a.threads < 1 {
		return fmt.Errorf("--threads %d is less than 1", a.threads)
	}
	if kernels := []string{"auto", "avx512", "avx2", "go"}; !slices.Contains(kernels, a.kernel) {
		return fmt.Errorf("--kernel %q is none of auto, avx512, avx2, go", a.kernel)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return fmt.Errorf("--log-level %q is none of debug, info, warn, error", a.logLevel)
	}
	return nil
}

// level is --log-level, raised by --quiet; checkCommon has seen it.
func (a *app) level() slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(a.logLevel))
	if a.quiet {
		level = max(level, slog.LevelWarn)
	}
	return level
}

func (a *app) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.logs, &slog.HandlerOptions{Level: level, ReplaceAttr: brief}))
}

// inner is a log for what goes on inside a verb: nothing below the level, unless
// --log-level debug asks for all.
func (a *app) inner(level slog.Level) *slog.Logger {
	if all := a.level(); all < slog.LevelInfo {
		level = all
	}
	return a.logger(max(a.level(), level))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// brief rounds times and seconds to what a reader of the log can use.
func brief(_ []string, attr slog.Attr) slog.Attr {
	switch attr.Value.Kind() {
	case slog.KindTime:
		return slog.String(attr.Key, attr.Value.Time().Format(time.TimeOnly))
	case slog.KindFloat64:
		return slog.String(attr.Key, strconv.FormatFloat(attr.Value.Float64(), 'f', 1, 64))
	}
	return attr
}

// line prints v as one line of JSON.
func (a *app) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", text)
	return err
}
