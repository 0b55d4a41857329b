package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"ndls"
)

// group holds a number of workers, and the threads of each.
type group struct{ workers, threads int }

func (c group) String() string { return fmt.Sprintf("%dx%d", c.workers, c.threads) }

// parseGroups reads a list like 1x1,2x1.
func parseGroups(text string) (list []group, err error) {
	for _, s := range strings.Split(text, ",") {
		var c group
		if _, err := fmt.Sscanf(s, "%dx%d", &c.workers, &c.threads); err != nil || c.workers < 1 || c.threads < 1 {
			return nil, fmt.Errorf("%q is not WORKERSxTHREADS", s)
		}
		list = append(list, c)
	}
	return list, nil
}

// partitions has a graph partitioned by each group in turn, and prints what each step
// took. All must leave the same files.
func (s *settings) partitions(ctx context.Context, dir string) error {
	groups, err := parseGroups(s.groups)
	if err != nil {
		return err
	}
	var sums string
	fmt.Println("| round | workers x threads | step | tasks | s | s in tasks | read, MB | written, MB | peak disk, MB | peak memory of a worker, MB |\n|---|---|---|---|---|---|---|---|---|---|")
	for round := range s.pairs {
		for i := range groups {
			c := groups[(i+round)%len(groups)]
			run := filepath.Join(dir, "run")
			steps, err := s.partition(ctx, run, c)
			if err != nil {
				return err
			}
			for _, x := range steps {
				fmt.Printf("| %d | %s | %s | %d | %.1f | %.1f | %d | %d | %d | %s |\n", round+1, c, x.name, x.tasks, x.seconds, x.worked,
					x.read/1e6, x.written/1e6, x.disk/1e6, x.memories())
			}
			got, err := hashes(run)
			if err != nil {
				return err
			}
			if sums == "" {
				sums = got
			}
			if got != sums {
				return fmt.Errorf("%s left\n%sand not\n%s", c, got, sums)
			}
			if err := os.RemoveAll(run); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\nAll left the same:\n\n%s", sums)
	return nil
}

// partition runs a coordinator and workers until the partition is complete.
func (s *settings) partition(ctx context.Context, dir string, c group) ([]step, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	token := newToken()
	processes, ctx := errgroup.WithContext(ctx)
	complete := false
	start := func(args ...string) {
		processes.Go(func() error {
			if err := s.run(ctx, token, args...); !complete {
				return err
			}
			return nil
		})
	}
	start("coordinator", "--run", dir, "--workers", fmt.Sprint(c.workers), "--quiet",
		"--dataset", s.graph(s.features), "--interval-blocks", fmt.Sprint(s.blocks))
	for i := range c.workers {
		start("worker", "--run", dir, "--memory", s.memory, "--threads", fmt.Sprint(c.threads), "--quiet",
			"--scratch", filepath.Join(filepath.Dir(dir), fmt.Sprint("scratch", i)))
	}
	disk := int64(0)
	for ctx.Err() == nil && !complete {
		time.Sleep(50 * time.Millisecond)
		disk = max(disk, usage(dir))
		complete = partitioned(ctx, dir)
	}
	stop()
	if err := processes.Wait(); err != nil {
		return nil, err
	}
	steps, err := readSteps(dir)
	if err == nil {
		steps = append(steps, total(steps, disk))
	}
	return steps, err
}

// partitioned reports whether the record has the partition as complete.
func partitioned(ctx context.Context, dir string) bool {
	d, err := ndls.Open(ctx, dir)
	if err != nil {
		return false // there is no record yet
	}
	stages := d.Record().Stages
	return len(stages) > 0 && stages[0].Stage == ndls.StagePartition && stages[0].State == ndls.Complete
}

// step holds the cost of a step of the partition. Worked sums its tasks' seconds.
type step struct {
	name            string
	tasks           int
	begun           time.Time
	seconds, worked float64
	read, written   int64
	disk            int64
	memory          map[string]int64 // by worker
}

func (x step) memories() string {
	var all []int64
	for _, m := range x.memory {
		all = append(all, m/1e6)
	}
	slices.Sort(all)
	return strings.Trim(fmt.Sprint(all), "[]")
}

// total has the most that the run directory alone held.
func total(steps []step, disk int64) step {
	sum := step{name: "all", disk: disk, memory: map[string]int64{}}
	for _, x := range steps {
		sum.tasks += x.tasks
		sum.seconds += x.seconds
		sum.worked += x.worked
		sum.read += x.read
		sum.written += x.written
		for w, m := range x.memory {
			sum.memory[w] = max(sum.memory[w], m)
		}
	}
	return sum
}

// readSteps finds the steps in the journal. A step begins when the record of its
// tasks is written, and ends when that of the next is.
func readSteps(dir string) (steps []step, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "journal", "*.json"))
	if err != nil {
		return nil, err
	}
	worker := map[string]string{} // of a task
	for _, name := range names {
		st, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var sealed struct {
			Record struct {
				Events []struct {
					Fact, Stage, Task, Worker string
					Tasks                     []struct{ Part string }
					Outcome                   struct {
						Report *struct {
							Seconds  float64
							Read     int64 `json:"bytes_read"`
							Written  int64 `json:"bytes_written"`
							Memory   int64 `json:"measured_peak_bytes"`
							PeakDisk int64 `json:"measured_peak_disk_bytes"`
						}
					}
				}
			}
		}
		if err := json.Unmarshal(text, &sealed); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, e := range sealed.Record.Events {
			var now *step
			if len(steps) > 0 {
				now = &steps[len(steps)-1]
			}
			switch {
			case e.Fact == "phase":
				if now != nil {
					now.seconds = st.ModTime().Sub(now.begun).Seconds()
				}
				if e.Stage != "partition" {
					return steps, nil
				}
				steps = append(steps, step{name: e.Tasks[0].Part, tasks: len(e.Tasks), begun: st.ModTime(), memory: map[string]int64{}})
			case e.Fact == "leased":
				worker[e.Task] = e.Worker
			case e.Fact == "ended" && e.Outcome.Report != nil && now != nil:
				r, w := e.Outcome.Report, worker[e.Task]
				now.worked += r.Seconds
				now.read += r.Read
				now.written += r.Written
				now.disk = max(now.disk, r.PeakDisk)
				now.memory[w] = max(now.memory[w], r.Memory)
				now.seconds = st.ModTime().Sub(now.begun).Seconds()
			}
		}
	}
	return steps, nil
}

// usage returns the disk usage of a folder in bytes.
func usage(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone by now
		}
		if st, err := d.Info(); err == nil {
			n += st.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return n
}

// hashes lists the SHA-256 of shards, node table and tiles.
func hashes(dir string) (string, error) {
	var lines strings.Builder
	for _, pattern := range []string{"graph/edges/*", "graph/nodes*", "graph/features/*/*", "graph/features/*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if st, err := os.Stat(name); err != nil || st.IsDir() {
				continue
			}
			f, err := os.Open(name)
			if err != nil {
				return "", err
			}
			h := sha256.New()
			_, err = io.Copy(h, f)
			if err := errors.Join(err, f.Close()); err != nil {
				return "", err
			}
			rel, _ := filepath.Rel(dir, name)
			fmt.Fprintf(&lines, "    %s  %s\n", hex.EncodeToString(h.Sum(nil)), filepath.ToSlash(rel))
		}
	}
	return lines.String(), nil
}
