package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ndls"
	"ndls/internal/testkit"
)

func main() {
	program := flag.String("ndls", "../build/ndls", "the program")
	scales := flag.String("scales", "1/1024,1/256,1/64", "scales of papers100m:, separated by commas")
	keys := flag.String("keys", "tails=0", "other keys of papers100m:; RESULTS.md has tails=0")
	data := flag.String("dataset", "", "a data set to measure instead of the scales")
	memory := flag.Float64("memory", 2, "--memory of each run in GiB, which takes place in a control group of that size")
	var r runs
	flag.StringVar(&r.dir, "dir", os.TempDir(), "folder for the run directories, which are removed")
	flag.StringVar(&r.stays, "run", "", "one run directory in place of these, which stays")
	flag.StringVar(&r.verb, "verb", "run", "verb of the program")
	flag.Parse()
	r.program, r.memory, r.options = *program, int64(*memory*(1<<30)), flag.Args()
	sets := []string{*data}
	if *data == "" {
		sets = nil
		for _, scale := range strings.Split(*scales, ",") {
			sets = append(sets, "papers100m:scale="+scale+","+*keys)
		}
	}
	if err := r.print(sets); err != nil {
		fmt.Fprintln(os.Stderr, "papers100m:", err)
		os.Exit(1)
	}
}

// runs are runs of the program with one budget.
type runs struct {
	program, verb, dir, stays string
	memory                    int64
	options                   []string
}

func (r runs) print(sets []string) error {
	fmt.Println("| data set | budget | stage | seconds | planned | peak memory | planned | read | written | passes | columns | edges/s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, set := range sets {
		if err := r.measure(set); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
	}
	return nil
}

func (r runs) measure(set string) error {
	dir, err := r.stays, error(nil)
	if dir == "" {
		if dir, err = os.MkdirTemp(r.dir, "ndls-papers100m"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	group, err := testkit.NewGroup(r.memory)
	if err != nil {
		return err
	}
	defer group.Remove()
	// The limit of a control group holds for a process, so that the run is one of its own.
	args := group.Command(r.program, r.verb, "--quiet", "--run", dir, "--memory", fmt.Sprint(r.memory))
	if r.verb == "run" {
		args = append(args, "--dataset", set, "--runs", "1")
	}
	args = append(args, r.options...)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	charged, err := group.Peak()
	if err != nil {
		return err
	}
	d, err := ndls.Open(context.Background(), dir)
	if err != nil {
		return err
	}
	disk, err := sizeOf(dir)
	if err != nil {
		return err
	}
	for _, s := range d.Record().Stages {
		planned := ndls.Figures{}
		if s.Planned != nil {
			planned = *s.Planned
		}
		rate := "–"
		if s.KernelSeconds > 0 {
			rate = fmt.Sprintf("%.0f M", float64(s.EdgesStreamed)/s.KernelSeconds/1e6)
		}
		fmt.Printf("| %s | %s | %s | %.1f | %.1f | %s | %s | %s | %s | %d | %d | %s |\n", set, size(float64(r.memory)), s.Stage, s.Seconds, planned.Seconds,
			size(float64(s.MeasuredPeak)), size(float64(planned.PeakBytes)), size(float64(s.BytesRead)), size(float64(s.BytesWritten)), s.Passes, s.ColumnsPerPass, rate)
	}
	_, err = fmt.Printf("| %s | %s | charged at most | | | %s | | %s on disk | | | | |\n", set, size(float64(r.memory)), size(float64(charged)), size(disk))
	return err
}

// sizeOf adds up the files in a folder.
func sizeOf(dir string) (total float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += float64(info.Size())
		}
		return err
	})
	return total, err
}

func size(bytes float64) string { return fmt.Sprintf("%.2f GiB", bytes/(1<<30)) }
