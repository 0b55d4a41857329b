package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	ndls := flag.String("ndls", "build/ndls", "the program")
	scales := flag.String("scales", "1/1024,1/256,1/64", "scales of papers100m:, separated by commas")
	data := flag.String("dataset", "", "a data set to measure instead of the scales")
	memory := flag.String("memory", "2GiB", "--memory of each run")
	dir := flag.String("dir", os.TempDir(), "folder for the run directories, which are removed")
	flag.Parse()
	sets := []string{*data}
	if *data == "" {
		sets = nil
		for _, scale := range strings.Split(*scales, ",") {
			sets = append(sets, "papers100m:scale="+scale)
		}
	}
	if err := run(*ndls, sets, *memory, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "papers100m:", err)
		os.Exit(1)
	}
}

func run(ndls string, sets []string, memory, dir string, options []string) error {
	fmt.Println("| data set | stage | seconds | peak memory | read | written | passes | columns | edges/s | disk at the end |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for _, set := range sets {
		if err := measure(ndls, set, memory, dir, options); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
	}
	return nil
}

// record is what is read of run.json.
type record struct {
	Stages []struct {
		Name          string  `json:"name"`
		Seconds       float64 `json:"seconds"`
		Peak          float64 `json:"measured_peak_bytes"`
		Read          float64 `json:"bytes_read"`
		Written       float64 `json:"bytes_written"`
		Passes        int     `json:"passes"`
		Columns       int     `json:"columns_per_pass"`
		EdgesStreamed float64 `json:"edges_streamed"`
		KernelSeconds float64 `json:"kernel_seconds"`
	} `json:"stages"`
}

func measure(ndls, set, memory, dir string, options []string) error {
	dir, err := os.MkdirTemp(dir, "ndls-papers100m")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := append([]string{"run", "--quiet", "--dataset", set, "--run", dir, "--memory", memory, "--runs", "1"}, options...)
	if out, err := exec.Command(ndls, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return err
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	disk, err := sizeOf(dir)
	if err != nil {
		return err
	}
	for _, s := range r.Stages {
		rate := "–"
		if s.KernelSeconds > 0 {
			rate = fmt.Sprintf("%.0f M", s.EdgesStreamed/s.KernelSeconds/1e6)
		}
		fmt.Printf("| %s | %s | %.1f | %s | %s | %s | %d | %d | %s | %s |\n", set, s.Name, s.Seconds,
			size(s.Peak), size(s.Read), size(s.Written), s.Passes, s.Columns, rate, size(disk))
	}
	return nil
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
