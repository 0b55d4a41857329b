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
	"ndls/internal/cgroup"
)

func main() {
	program := flag.String("ndls", "build/ndls", "the program")
	scales := flag.String("scales", "1/1024,1/256,1/64", "scales of papers100m:, separated by commas")
	data := flag.String("dataset", "", "a data set to measure instead of the scales")
	memory := flag.Float64("memory", 2, "--memory of each run in GiB, which takes place in a control group of that size")
	dir := flag.String("dir", os.TempDir(), "folder for the run directories, which are removed")
	flag.Parse()
	sets := []string{*data}
	if *data == "" {
		sets = nil
		for _, scale := range strings.Split(*scales, ",") {
			sets = append(sets, "papers100m:scale="+scale)
		}
	}
	if err := run(*program, sets, *dir, *memory, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "papers100m:", err)
		os.Exit(1)
	}
}

func run(program string, sets []string, dir string, memory float64, options []string) error {
	fmt.Println("| data set | budget | stage | seconds | planned | peak memory | planned | read | written | passes | columns | edges/s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, set := range sets {
		if err := measure(program, set, dir, memory, options); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
	}
	return nil
}

func measure(program, set, dir string, memory float64, options []string) error {
	dir, err := os.MkdirTemp(dir, "ndls-papers100m")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	limit := int64(memory * (1 << 30))
	group, err := cgroup.New(limit)
	if err != nil {
		return err
	}
	defer group.Remove()
	// The limit of a control group is that of a process, so that the run is one of its own.
	args := group.Command(append([]string{program, "run", "--quiet", "--dataset", set, "--run", dir, "--memory", fmt.Sprint(limit), "--runs", "1"}, options...)...)
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
		fmt.Printf("| %s | %s | %s | %.1f | %.1f | %s | %s | %s | %s | %d | %d | %s |\n", set, size(float64(limit)), s.Stage, s.Seconds, planned.Seconds,
			size(float64(s.MeasuredPeak)), size(float64(planned.PeakBytes)), size(float64(s.BytesRead)), size(float64(s.BytesWritten)), s.Passes, s.ColumnsPerPass, rate)
	}
	_, err = fmt.Printf("| %s | %s | charged at most | | | %s | | %s on disk | | | | |\n", set, size(float64(limit)), size(float64(charged)), size(disk))
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
