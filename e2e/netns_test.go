package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// network is a cluster whose coordinator and workers have a host each, with addresses
// of their own, and keys. Only the run directory is shared.
type network struct {
	*cluster
	*lan
	keys []string
}

// newNetwork has a coordinator, host 0, and hosts for workers 1 and on.
func newNetwork(t *testing.T, m mode, workers int) *network {
	t.Helper()
	seed := rand.Uint64()
	n := &network{cluster: newCluster(t), lan: newLan(t, workers+1, seed)}
	n.mode = m
	dir := filepath.Join(t.TempDir(), "keys")
	run(t, "cluster-keys", "--out", dir, "--quiet")
	n.keys = []string{"--keys", dir}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("frames were lost by seed %d", seed)
		}
	})
	return n
}

func (n *network) coordinator(workers int, hooks ...string) {
	boss := n.hosts[0]
	args := n.coordinatorArgs(workers, append(n.keys, "--listen", boss.free(), "--gossip-listen", boss.free())...)
	n.keepAt(boss.command, hooks, args...)
}

func (n *network) workerFlags(i int, extra ...string) []string {
	return n.workerArgs(append(append(n.keys, "--listen", n.hosts[i].free()), extra...)...)
}

func (n *network) worker(i int, hooks []string, extra ...string) {
	n.keepAt(n.hosts[i].command, hooks, n.workerFlags(i, extra...)...)
}

func (n *network) await(what string, pleases func(status) bool) {
	n.cluster.t.Helper()
	n.awaitAt(n.hosts[0].command, n.keys, what, pleases)
}

// stopsAt starts a worker that stops at a hook, and waits for that.
func (c *cluster) stopsAt(at launch, hook string, args ...string) (goOn func()) {
	c.t.Helper()
	cmd, text, cancel := c.processAt(at, hook+":stop", args...)
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	c.wg.Go(func() {
		defer cancel()
		err := cmd.Wait()
		if err != nil {
			c.fails.Store(true)
			c.t.Errorf("the worker that stopped at %s: %v\n%s", hook, err, text)
		}
		ended <- err
	})
	await(c.t, "a worker at "+hook, func() bool { return len(ended) > 0 || state(cmd) == "T" })
	return func() { _ = cmd.Process.Signal(syscall.SIGCONT) }
}

// state is the letter that the kernel has for a process, "" for one that is gone.
func state(cmd *exec.Cmd) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

// TestNetworkFourWorkers is the job on five hosts.
func TestNetworkFourWorkers(t *testing.T) {
	whole(t)
	inModes(t, func(t *testing.T, m mode) {
		n := newNetwork(t, m, 4)
		want := wantOf(t, m.job...)
		n.coordinator(4)
		n.worker(1, nil, "--memory", "130MiB")
		n.worker(2, nil, "--memory", "200MiB", "--threads", "2")
		n.worker(3, nil, "--block-columns", "16")
		n.worker(4, nil)
		n.end("four hosts", want)
	})
}

// TestNetworkCut cuts a worker off at a point of its protocol, silently as a
// firewall does, until its lease has gone to another worker.
func TestNetworkCut(t *testing.T) {
	whole(t)
	t.Parallel()
	for hook, m := range map[string]mode{
		"next-done:2": columns, "commit:2": columns, "finish:2": columns,
		intervals.late: intervals,
	} {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			n := newNetwork(t, m, 3)
			want := wantOf(t, m.job...)
			beside := 0
			if m.share != nil {
				beside = 1
				n.worker(3, nil)
			}
			n.coordinator(1 + beside)
			goOn := n.stopsAt(n.hosts[1].command, hook, n.workerFlags(1)...)
			n.hosts[1].set(everything)
			goOn()
			n.await("a lost lease", lost)
			n.worker(2, nil)
			n.await("running tasks", working(beside))
			n.hosts[1].set(nothing)
			n.end("cut off at "+hook, want)
			n.lostIn(m)
		})
	}
}

// TestNetworkLoses loses a tenth of all frames, from the first to the last.
func TestNetworkLoses(t *testing.T) {
	whole(t)
	inModes(t, func(t *testing.T, m mode) {
		n := newNetwork(t, m, 3)
		want := wantOf(t, m.job...)
		n.lose(0.1)
		n.coordinator(3)
		for i := 1; i <= 3; i++ {
			n.worker(i, nil)
		}
		n.end("a tenth of the frames lost", want)
		if lost := n.lost(); lost < 20 {
			t.Errorf("only %d frames were lost", lost)
		} else {
			t.Logf("%d frames were lost", lost)
		}
	})
}

// TestNetworkSlow has cables of 100 Mb/s and 10 ms, so that what is shared takes far longer than
// what is computed: nobody is taken for dead, and the coordinator says within 100 ms that it
// leads.
func TestNetworkSlow(t *testing.T) {
	whole(t)
	inModes(t, func(t *testing.T, m mode) {
		n := newNetwork(t, m, 2)
		want := wantOf(t, m.job...)
		n.slow(10*time.Millisecond, 100e6)
		boss := n.hosts[0]
		page := net.JoinHostPort(boss.address, "8080")
		args := n.coordinatorArgs(2, append(n.keys, "--listen", boss.free(), "--gossip-listen", boss.free(), "--http", page)...)
		n.keepAt(boss.command, nil, args...)
		n.worker(1, nil)
		n.worker(2, nil)
		healthy := probe(t, &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, at string) (net.Conn, error) { return boss.dial(ctx, at) }}}, page)
		n.end("a slow network", want)
		healthy()
		var report struct{ Losses []any }
		decode(t, filepath.Join(n.folder, "run.json"), &report)
		if len(report.Losses) > 0 {
			t.Errorf("lost: %v", report.Losses)
		}
	})
}

// TestNetworkFlaps cuts the cable of a worker again and again, and only what gossip
// sends in between, through the whole run.
func TestNetworkFlaps(t *testing.T) {
	whole(t)
	inModes(t, func(t *testing.T, m mode) {
		n := newNetwork(t, m, 2)
		want := wantOf(t, m.job...)
		n.coordinator(2)
		n.worker(1, nil)
		n.worker(2, nil)
		cuts := n.flap(n.hosts[2])
		n.end("flapping", want)
		t.Logf("%d cuts", cuts())
	})
}

// flap cuts a cable for drawn times until it is told to end, and says how often.
func (n *network) flap(h *host) (end func() int) {
	n.mu.Lock()
	rng := rand.New(rand.NewPCG(n.rng.Uint64(), 2))
	n.mu.Unlock()
	cuts, over := 0, make(chan struct{})
	var flapping sync.WaitGroup
	flapping.Go(func() {
		for ; ; cuts++ {
			for _, c := range []cut{everything, nothing, datagrams, nothing} {
				h.set(c)
				select {
				case <-time.After(time.Duration(50+rng.IntN(400)) * time.Millisecond):
				case <-over:
					h.set(nothing)
					return
				}
			}
		}
	})
	return func() int {
		close(over)
		flapping.Wait()
		return cuts
	}
}
