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

	"ndls/internal/cgroup"
)

func main() {
	ndls := flag.String("ndls", "build/ndls", "the program")
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
	if err := run(*ndls, sets, *dir, *memory, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "papers100m:", err)
		os.Exit(1)
	}
}

func run(ndls string, sets []string, dir string, memory float64, options []string) error {
	fmt.Println("| data set | budget | stage | seconds | planned | peak memory | planned | read | written | passes | columns | edges/s |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, set := range sets {
		if err := measure(ndls, set, dir, memory, options); err != nil {
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
		Planned       struct {
			Seconds float64 `json:"seconds"`
			Peak    float64 `json:"peak_bytes"`
		} `json:"planned"`
	} `json:"stages"`
}

func measure(ndls, set, dir string, memory float64, options []string) error {
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
	args := group.Command(append([]string{ndls, "run", "--quiet", "--dataset", set, "--run", dir, "--memory", fmt.Sprint(limit), "--runs", "1"}, options...)...)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	charged, err := group.Peak()
	if err != nil {
		return err
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
		fmt.Printf("| %s | %s | %s | %.1f | %.1f | %s | %s | %s | %s | %d | %d | %s |\n", set, size(float64(limit)), s.Name, s.Seconds, s.Planned.Seconds,
			size(s.Peak), size(s.Planned.Peak), size(s.Read), size(s.Written), s.Passes, s.Columns, rate)
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
