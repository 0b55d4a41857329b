package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestChaos draws what goes wrong: where processes die, which network or store they
// have, and who falls silent, has no disk, or comes late. NDLS_CHAOS says how many
// rounds, one of deaths alone if it is not set, NDLS_DRAW_SEED where to begin: a round
// that failed is drawn again with the seed it has told. NDLS_CHAOS_PARALLEL says how workers
// share stages in every round: columns, intervals or grid.
func TestChaos(t *testing.T) {
	whole(t)
	rounds, all := 1, false
	if v := os.Getenv("NDLS_CHAOS"); v != "" {
		var err error
		if rounds, err = strconv.Atoi(v); err != nil {
			t.Fatalf("NDLS_CHAOS=%s is no number of rounds", v)
		}
		all = true
	}
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("NDLS_DRAW_SEED"); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("NDLS_DRAW_SEED=%s is no seed", v)
		}
	}
	for i := range rounds {
		seed := seed + uint64(i)
		t.Run(fmt.Sprintf("round %d seed %d", i, seed), func(t *testing.T) {
			r := &round{T: t, rng: rand.New(rand.NewPCG(seed, 0))}
			r.play(all)
		})
		if t.Failed() {
			return
		}
	}
}

// round is a run under faults that rng draws.
type round struct {
	*testing.T
	rng *rand.Rand
}

// deaths draws at most so many points at which a process dies in turn.
func (r *round) deaths(most int) (hooks []string) {
	points := []string{"join", "next-done", "gang", "gang-done", "commit", "commit-done", "renew-done", "finish", "finish-done"}
	actions := []string{"kill", "kill", "term"}
	for range r.rng.IntN(most + 1) {
		hooks = append(hooks, fmt.Sprintf("%s:%d:%s", r.one(points), 1+r.rng.IntN(6), r.one(actions)))
	}
	return hooks
}

func (r *round) one(of []string) string { return of[r.rng.IntN(len(of))] }

// resources draws those of a worker.
func (r *round) resources() []string {
	return []string{"--memory", fmt.Sprint(130+r.rng.IntN(400), "MiB"), "--threads", strconv.Itoa(1 + r.rng.IntN(3))}
}

// sharing draws how workers share stages, and how many they are.
func (r *round) sharing() (m mode, workers int) {
	workers = 1 + r.rng.IntN(4)
	drawn := r.one([]string{"intervals", "grid", "columns", "columns"})
	if v := os.Getenv("NDLS_CHAOS_PARALLEL"); v != "" {
		drawn = v
	}
	switch drawn {
	case "columns":
		return columns, workers
	case "intervals":
		return intervals, max(workers, 2)
	case "grid":
		return twoDimensions, 2 + r.rng.IntN(4)
	}
	r.Fatalf("NDLS_CHAOS_PARALLEL=%s is none of columns, intervals, grid", drawn)
	return mode{}, 0
}

// play runs the job where deaths are all that goes wrong, or all kinds of faults.
func (r *round) play(all bool) {
	m, workers := r.sharing()
	place := "here"
	var flags []string
	if all {
		variants := [][]string{nil, {"--targets", "labelled"}, {"--tolerance", "0"}}
		flags = variants[r.rng.IntN(len(variants))]
		m.job = append(append([]string{}, m.job...), flags...)
		place = r.one([]string{"here", "network", "bucket"})
	}
	var c *cluster
	if place == "network" {
		n := newNetwork(r.T, m, workers)
		c = n.cluster
		r.network(n, workers)
	} else {
		c = newCluster(r.T)
		c.mode = m
		r.processes(c, workers, all, place == "bucket")
	}
	c.end(place, wantOf(r.T, m.job...))
	r.Logf("%s %v %v: %d workers, %d deaths", place, flags, m.share, workers, c.died.Load())
}

// processes starts a run on this host, in a folder or a bucket. A task may be lost
// five times: with other faults there are fewer deaths.
func (r *round) processes(c *cluster, workers int, faults, bucket bool) {
	most := 4
	var own []string
	if bucket {
		c.bucket(r.rng.Uint64())
		own = []string{"--scratch", r.TempDir()}
	}
	if faults {
		most = 2
	}
	least := 1 + r.rng.IntN(workers)
	full := faults && r.rng.IntN(2) == 0 && lacking() == ""
	if full {
		least++ // a run fails if the only worker that is there has a full disk
	}
	c.coordinator(least, r.deaths(most+1)...)
	if faults && r.rng.IntN(2) == 0 {
		c.flaps(rand.New(rand.NewPCG(r.rng.Uint64(), 0)), own...)
	}
	if full {
		c.worker(nil, "--scratch", fullDisk(r.T))
	}
	for range workers {
		c.worker(r.deaths(most), append(r.resources(), own...)...)
	}
}

// network starts a run on hosts of its own: all lose frames, and the cable of one,
// maybe the coordinator's, is cut again and again, or that of a worker at a point
// until its lease is lost.
func (r *round) network(n *network, workers int) {
	n.lose(0.1 * r.rng.Float64())
	n.coordinator(1, r.deaths(2)...)
	victim := 1 + r.rng.IntN(workers)
	switch r.rng.IntN(3) {
	case 0:
		hook := fmt.Sprintf("%s:%d", r.one([]string{"next-done", "commit", "commit-done", "finish"}), 1+r.rng.IntN(2))
		goOn := n.stopsAt(n.hosts[victim].command, hook, n.workerFlags(victim)...)
		n.hosts[victim].set(everything)
		goOn()
		n.await("a lost lease", lost)
		defer n.hosts[victim].set(nothing)
	case 1:
		end := n.flap(n.hosts[r.rng.IntN(workers+1)])
		r.Cleanup(func() { end() })
	}
	for i := 1; i <= workers; i++ {
		n.worker(i, r.deaths(2), r.resources()...)
	}
}
