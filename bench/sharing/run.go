package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"ndls"
	"ndls/internal/packed"
)

const (
	// measuredStrips is the number of strips of the measured graph: each worker of the largest group has one.
	measuredStrips = 16
	// hopsOfAll is the number of hops of each node: none comes as near to the stationary state as its ε asks.
	hopsOfAll = 4
)

// job are the options of the whole job, of which lsi and smooth are measured.
func (s *settings) job(w way) []string {
	nodes := measuredStrips * packed.StripRows
	return []string{
		"--dataset", fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=%d,classes=8,seed=1", nodes, w.edges*nodes, w.features),
		"--interval-blocks", "1", "--shards", "none", "--runs", "1", "--epochs", "1", "--probes", strconv.Itoa(s.probes),
		"--epsilon", "0.000001", "--kmax", strconv.Itoa(hopsOfAll), "--label-depth", "0", "--quiet",
	}
}

// partitioned returns a run directory in which the graph of a way is cut.
func (s *settings) partitioned(ctx context.Context, program string, w way) (string, error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("graph-%d-%d", w.edges, w.features))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, command(ctx, nil, program, append([]string{"partition", "--run", dir, "--memory", "2GiB"}, s.job(w)[:6]...)...)
}

// command runs a program to its end, in a namespace unless h is nil.
func command(ctx context.Context, h *host, program string, args ...string) error {
	name := program
	if h != nil {
		args = append([]string{"netns", "exec", h.space, program}, args...)
		name = "ip"
	}
	cmd := exec.CommandContext(ctx, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.Bytes())
	}
	return nil
}

// run executes the job once, and returns the seconds of its stages by name.
func (s *settings) run(ctx context.Context, l *lan, w way, base string, workers int, k kind) (map[string]float64, error) {
	dir, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	run, keys := filepath.Join(dir, "run"), filepath.Join(dir, "keys")
	if err := os.CopyFS(run, os.DirFS(base)); err != nil {
		return nil, err
	}
	if err := command(ctx, nil, k.program, "cluster-keys", "--out", keys, "--quiet"); err != nil {
		return nil, err
	}
	processes, ctx := errgroup.WithContext(ctx)
	processes.Go(func() error {
		boss := &l.hosts[0]
		args := append([]string{
			"coordinator", "--run", run, "--keys", keys, "--workers", strconv.Itoa(workers), "--lease", "60s",
			"--listen", boss.free(), "--gossip-listen", boss.free(),
		}, s.job(w)...)
		return command(ctx, boss, k.program, append(args, k.share...)...)
	})
	for _, h := range l.hosts[1:] {
		processes.Go(func() error {
			return command(ctx, &h, k.program, "worker", "--run", run, "--keys", keys, "--listen", h.free(), "--memory", s.memory,
				"--threads", "1", "--quiet")
		})
	}
	if err := processes.Wait(); err != nil {
		return nil, err
	}
	d, err := ndls.Open(context.WithoutCancel(ctx), run)
	if err != nil {
		return nil, err
	}
	seconds := map[string]float64{}
	for _, x := range d.Record().Stages {
		seconds[string(x.Stage)] = x.Seconds
	}
	return seconds, nil
}
