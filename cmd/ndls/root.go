package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/meant"
	"ndls/internal/progress"
	"ndls/internal/tracing"
)

// app is one command line being executed: its flags are in limits, and what it prints goes through results.
type app struct {
	results
	limits
	stderr io.Writer
	// started is false as long as what failed is the command line itself.
	started bool
	log     *slog.Logger
	// brief says that stderr is a terminal, and that no --log-level asks for all that there is to say.
	brief bool

	runDir   string
	config   string
	logLevel string
	quiet    bool
	resume   bool
}

// newApp is the program before it has read a command line.
func newApp(stdout, stderr io.Writer) *app {
	return &app{results: results{stdout: stdout}, stderr: stderr}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ndls COMMAND",
		Short: "Node dependent local smoothing of graphs that do not fit in memory",
		Long: `ndls smooths the features and labels of a graph, each node over as many hops
as it takes to come near the stationary state, and trains a classifier in
between. Memory is a budget: edges and wide rows stay on disk.

K, the local smoothing iteration, is the number of hops after which the influence of
the graph on a node is within --epsilon of what it tends to.`,
		Example: `  ndls demo
  ndls run --dataset planetoid:DIR/cora --run RUN
  ndls plan --nodes 111059956 --edges 1615000000 --features 128 --classes 172
  ndls export --run RUN --what smoothed --format npy --out smoothed.npy`,
		Version:            ndls.Version,
		SilenceUsage:       true,
		SilenceErrors:      true,
		DisableSuggestions: true, // suggestion makes them
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.DisableFlagParsing { // it completes the words of another command line
				return nil
			}
			for _, line := range misspelt(cmd.Root(), os.Environ()) {
				fmt.Fprintln(a.stderr, "ndls: warning:", line)
			}
			if err := readEnvironment(cmd); err != nil {
				return err
			}
			if err := a.readConfig(cmd); err != nil {
				return err
			}
			return needed(cmd)
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	f := root.PersistentFlags()
	a.flags(f)
	f.StringVar(&a.config, "config", "", "YAML file with a key for each flag; flags on the command line, and environment variables, take precedence")
	f.StringVar(&a.resultFile, "result", "", "file to write when the command ends, in one line of JSON: the exit status, the error if there is one, and the last line of --json")
	f.StringVar(&a.logLevel, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&a.json, "json", false, "one JSON object a line on stdout")
	f.BoolVar(&a.quiet, "quiet", false, "no progress, and of the log warnings and errors only; results are printed")
	root.SetHelpFunc(help)
	root.AddCommand(
		a.demoCommand(), a.runCommand(), a.partitionCommand(), a.lsiCommand(), a.smoothCommand(), a.trainCommand(),
		a.smoothLabelsCommand(), a.evaluateCommand(), a.planCommand(), a.generateCommand(), a.exportCommand(), a.inferCommand(),
		a.labCommand("reproduce", "a table or a figure of the paper"), a.tuneCommand(),
		a.inspectCommand(), a.explainCommand(), a.listCommand(), a.serveCommand(), a.diffCommand(),
		a.reportCommand(), a.verifyCommand(), a.gcCommand(),
		a.labCommand("bench", "measurements of this machine"), a.versionCommand(),
		a.coordinatorCommand(), a.workerCommand(), a.statusCommand(), a.clusterKeysCommand(), a.manCommand(), datasetsTopic(),
	)
	for _, s := range ndls.Stages() {
		if !ndls.InWhole(s) {
			root.AddCommand(a.stageCommand(s))
		}
	}
	ownWords(root)
	return root
}

// processors is the number of threads that may run at a time, unless --threads says otherwise.
var processors = runtime.GOMAXPROCS(0)

// waiting is the number of threads, in addition to those that compute, that may continue when their
// read has ended. Without one, an ended read waits for a computing thread to pause, and the next
// read is not requested; more of them take time from computing threads.
const waiting = 1

// command makes a verb without arguments. do gets a context whose meters are
// shown, and the logger is set.
func (a *app) command(use, short, long string, do func(ctx context.Context, cmd *cobra.Command) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: noWords,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.started = true
			if err := cmp.Or(a.limits.check(cmd), a.checkLevel(), a.results.prepare()); err != nil {
				return asUsage(err)
			}
			if err := a.checkMemory(cmd); err != nil {
				return err
			}
			runtime.GOMAXPROCS(a.threads + waiting)
			defer a.fold(cmd)()
			var logs io.Writer = a.stderr
			ctx, width := cmd.Context(), columns(a.stderr)
			if !a.quiet {
				display := progress.NewDisplay(a.stderr, width)
				defer display.Close()
				ctx = progress.WithSink(ctx, display)
				logs = display
			}
			if width != nil {
				logs = newFolding(logs, width)
			}
			a.brief = width != nil && !cmd.Flags().Changed("log-level")
			if a.brief {
				a.log = slog.New(newTerminalLog(logs, a.level()))
			} else {
				a.log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: a.level(), ReplaceAttr: brief}))
			}
			// What libraries print by themselves comes back as errors, too.
			log.SetFlags(0)
			log.SetOutput(slog.NewLogLogger(a.log.Handler(), slog.LevelDebug).Writer())
			stop, err := tracing.Start(ctx, ndls.Version)
			if err != nil {
				return err
			}
			err = do(ctx, cmd)
			if lost := stop(); lost != nil {
				a.log.Warn("spans are lost", "because", lost)
			}
			return err
		},
	}
}

// open opens a run directory, and says what is missing or damaged there.
func (a *app) open(ctx context.Context, dir string) (*ndls.Directory, error) {
	d, err := ndls.Open(ctx, dir)
	if err == nil && d.Problem() != "" {
		a.log.Warn(d.Problem())
	}
	return d, err
}

// checkLevel refuses a --log-level that there is not.
func (a *app) checkLevel() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return fmt.Errorf("--log-level %q is none of %s%s", a.logLevel, strings.Join(logLevels, ", "), meant.Hint(a.logLevel, logLevels))
	}
	return nil
}

// level is --log-level, raised by --quiet; checkLevel has seen it.
func (a *app) level() slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(a.logLevel))
	if a.quiet {
		level = max(level, slog.LevelWarn)
	}
	return level
}

// terminal says how many columns and rows the terminal behind w has now; it is nil where w is no
// terminal, or one that cannot go back on its line.
func terminal(w io.Writer) func() (columns, rows int) {
	if f, ok := w.(*folding); ok {
		w = f.w
	}
	if c, ok := w.(*checked); ok {
		w = c.w
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (columns, rows int) {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
		return defaultColumns, defaultRows
	}
}

// defaultColumns and defaultRows are the size of a terminal that does not tell its own.
const defaultColumns, defaultRows = 80, 24

// columns says how many columns the terminal behind w has now; it is nil where w is none.
func columns(w io.Writer) func() int {
	if f, ok := w.(*folding); ok {
		return f.columns
	}
	size := terminal(w)
	if size == nil {
		return nil
	}
	return func() int {
		columns, _ := size()
		return columns
	}
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
