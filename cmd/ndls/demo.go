package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"ndls"
)

// demoDataset, demoRuns, demoEpochs and demoMemory are the options of ndls demo.
const (
	demoDataset = "synthetic:nodes=100000,edges=1000000,features=64,classes=8,seed=1"
	demoRuns    = 3
	demoEpochs  = 60
	demoMemory  = 1 << 30
)

// demoRun is the run directory of a demo that names none.
const demoRun = "ndls-demo"

func (a *app) demoCommand() *cobra.Command {
	v := &stageVerb{app: a}
	var show bool
	cmd := a.command("demo [RUN]", "the whole job on a built-in graph, in less than a minute",
		`demo makes a graph of 100,000 nodes and 1,000,000 edges, runs the whole job on it in RUN (default `+demoRun+`), and
shows the report. It needs no data and no network. The same command continues an interrupted demo; afterwards RUN may be
removed. The graph is `+demoDataset+`.`,
		func(ctx context.Context, cmd *cobra.Command) error {
			v.plan, v.resume = newPlanFlags(cmd), true
			if v.runDir == "" {
				v.runDir = demoRun
			}
			if v.memoryBytes == 0 {
				v.memoryBytes = demoMemory
			}
			c := v.config()
			c.Dataset = demoDataset
			c.Options = func(o *ndls.Options) { o.Train.Runs, o.Train.Epochs = demoRuns, demoEpochs }
			v.next = []string{
				"ndls explain " + v.runDir + " --node 17",
				"ndls export " + v.runDir + " --what predictions --format csv --out predictions.csv",
				"ndls inspect --dataset URI    # what an import finds in your files",
			}
			if err := v.run(ctx, c); err != nil {
				return err
			}
			if !cmd.Flags().Changed("open") {
				show = onDesktop(a)
			}
			if !show {
				return nil
			}
			return browse(ctx, a.log, filepath.Join(v.runDir, "report.html"))
		})
	a.orRunFlag(cmd, "run directory, or a word without --run (default "+demoRun+")")
	cmd.Flags().BoolVar(&show, "open", false, "open the report in a browser (default where stdout is a terminal on a desktop)")
	cmd.Example = `  ndls demo
  ndls demo /tmp/demo --open=false`
	return cmd
}

// onDesktop reports whether somebody looks at a terminal on a desktop.
func onDesktop(a *app) bool {
	return terminal(a.stdout) != nil && (os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "")
}

// browse opens a page in the browser of the desktop, and does not wait for that to end.
func browse(ctx context.Context, log *slog.Logger, page string) error {
	open := exec.CommandContext(ctx, "xdg-open", page)
	if err := open.Start(); err != nil {
		log.Warn("no browser opens the report: open the file yourself", "because", err)
		return nil
	}
	return open.Process.Release()
}
