package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"ndls"

	"ndls/catalog"
	"ndls/internal/storage"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// faultEnv may hold the distance between two operations that fail; 1 is every operation
// in every way, 3 is every operation once with an error and once by a death.
const (
	faultEnv    = "NDLS_FAULTS"
	faultSample = 1009
)

// faultyDisk is the disk on which the runs of TestEveryOperation are. No folder of the
// operating system has this name, so that an operation that is not one of package vfs
// fails at once.
const faultyDisk = "/disks/faults"

// scenario is a command line that is disturbed.
type scenario struct {
	name string
	// before is done in peace, disturbed meets the fault, after is done in peace again,
	// until it ends with 0, and gives the bytes of the same without faults.
	before, disturbed, after string
}

const (
	tinyRun   = "run --run " + faultyDisk + "/run --memory 256MiB --threads 1 --runs 1 --epochs 1 --hidden 8 --probes 16 --quiet"
	tinyGraph = " --dataset synthetic:nodes=120,edges=400,features=20,classes=3,seed=1"
	fewFiles  = " --shards none --keep-features=false --keep-smoothed=false --smoothed-precision float16 --probabilities best"
	scratchy  = " --tolerance 0 --precision float16"
	otherPlan = "lsi --run " + faultyDisk + "/run --memory 256MiB --threads 1 --quiet --epsilon 0.3"
	collect   = "gc --delete --run " + faultyDisk + "/run"
)

var scenarios = []scenario{
	{name: "whole run", disturbed: tinyRun + tinyGraph, after: tinyRun + tinyGraph},
	{name: "every hop of float16", disturbed: tinyRun + tinyGraph + scratchy, after: tinyRun + tinyGraph + scratchy},
	{name: "few files", disturbed: tinyRun + tinyGraph + fewFiles, after: tinyRun + tinyGraph + fewFiles},
	{name: "garbage", before: tinyRun + tinyGraph, disturbed: collect, after: collect},
	{
		name: "another plan", before: tinyRun + tinyGraph, disturbed: otherPlan + " --resume=false", after: otherPlan,
	},
}

// drive is a folder, of a name that no folder of the operating system has, under which
// command lines find the disk that they are given. Tests that run at the same time have
// each a drive of their own.
type drive string

// mount gives a disk to the drive, which sees it as if it were faultyDisk.
func (d drive) mount(disk vfs.FS) (unmount func()) {
	return vfs.Mount(string(d), vfstest.Moved(disk, faultyDisk, string(d)))
}

// in runs a command line, which names files on faultyDisk, in this process on a disk.
func (d drive) in(disk vfs.FS, line string) result {
	defer d.mount(disk)()
	var out, errs bytes.Buffer
	code := run(context.Background(), strings.Fields(strings.ReplaceAll(line, faultyDisk, string(d))), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// committed lists what the catalogue on a disk names, after a check of the bytes.
func (d drive) committed(t *testing.T, disk vfs.FS) map[string]string {
	t.Helper()
	defer d.mount(disk)()
	store, err := storage.NewLocal(string(d) + "/run")
	if err != nil {
		t.Fatal(err)
	}
	cat, err := catalog.Open(context.Background(), store)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, e := range cat.Entries("") {
		if err := cat.Verify(context.Background(), e); err != nil {
			t.Error(err)
		}
		sums[e.Path] = e.Checksum
	}
	return sums
}

// fault is how an operation fails, the status of the command that it ends, and what is
// left then.
type fault struct {
	name   string
	plan   vfstest.Plan
	status int
	left   func(m *vfstest.Mem, at int) *vfstest.Mem
}

func alive(m *vfstest.Mem, _ int) *vfstest.Mem { return m.Clone() }

// power is a power failure that leaves a share of what was not synced.
func power(share float64) func(m *vfstest.Mem, at int) *vfstest.Mem {
	return func(m *vfstest.Mem, at int) *vfstest.Mem {
		return m.CrashClone(rand.New(rand.NewPCG(7, uint64(at))), share)
	}
}

var faultKinds = []fault{
	{"broken disk", vfstest.Plan{Errno: syscall.EIO}, ndls.ExitError, alive},
	{"process killed", vfstest.Plan{Dies: true}, ndls.ExitError, alive},
	{"full disk", vfstest.Plan{Errno: syscall.ENOSPC}, ndls.ExitBudget, alive},
	{"power failure", vfstest.Plan{Dies: true}, ndls.ExitError, power(0)},
	{"broken disk, then power failure", vfstest.Plan{Errno: syscall.EIO}, ndls.ExitError, power(0.5)},
	{"power failure that leaves a part", vfstest.Plan{Dies: true}, ndls.ExitError, power(0.5)},
}

// TestEveryOperation fails each operation on files of a small run once, in every way of
// faultKinds, and kills the process before each. The command ends well with the right
// bytes, or says what failed; the command that is given again ends with the right bytes.
func TestEveryOperation(t *testing.T) {
	step := faultSample
	if text := os.Getenv(faultEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%s is no distance", faultEnv, text)
		}
		step = n
	} else if testing.Short() {
		step *= 10
	}
	lanes := runtime.GOMAXPROCS(0)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			start := vfstest.NewMem(faultyDisk)
			if s.before != "" {
				inPeace(t, start, s.before)
			}
			clean := start.Clone()
			count := vfstest.NewFaults(clean, vfstest.Plan{})
			inPeace(t, count, s.disturbed)
			want := drive(faultyDisk).committed(t, clean)
			type try struct {
				fault
				at int
			}
			var tries []try
			for i, f := range faultKinds {
				first := 1
				if step > 1 {
					first += i * step / len(faultKinds)
				}
				for at := first; at <= count.Ops(); at += step {
					tries = append(tries, try{f, at})
				}
			}
			var next, free, well atomic.Int64
			t.Run("faults", func(t *testing.T) {
				for lane := range lanes {
					t.Run(strconv.Itoa(lane), func(t *testing.T) {
						t.Parallel()
						for i := next.Add(1) - 1; i < int64(len(tries)); i = next.Add(1) - 1 {
							felt, code := disturb(t, drive(fmt.Sprint(faultyDisk, lane)), s, start.Clone(), tries[i].fault, tries[i].at, want)
							if felt == "" {
								free.Add(1)
							}
							if code == 0 {
								well.Add(1)
							}
						}
					})
				}
			})
			t.Logf("%d operations %v, %d faults: %d runs ended well, %d with a reason and then well; the run did not come to %d",
				count.Ops(), count.Kinds(), len(tries), well.Load(), int64(len(tries))-well.Load(), free.Load())
			if free.Load() > int64(len(tries)/20) {
				t.Errorf("of %d faults the run did not come to %d", len(tries), free.Load())
			}
		})
	}
}

func inPeace(t *testing.T, disk vfs.FS, line string) {
	t.Helper()
	if r := drive(faultyDisk).in(disk, line); r.code != 0 {
		t.Fatalf("ndls %s: status %d\n%s", line, r.code, r.stderr)
	}
}

// disturb runs a scenario on a disk with one fault, and returns which it was and the
// status.
func disturb(t *testing.T, d drive, s scenario, m *vfstest.Mem, f fault, at int, want map[string]string) (felt string, code int) {
	t.Helper()
	plan := f.plan
	plan.At = at
	faults := vfstest.NewFaults(m, plan)
	r := d.in(faults, s.disturbed)
	felt = faults.Felt()
	what := fmt.Sprintf("%s at %s", f.name, felt)
	left := f.left(m, at)
	if felt == "" {
		what = "no fault"
		if r.code != 0 {
			t.Errorf("%s: status %d: %s", what, r.code, r.stderr)
		}
	}
	if r.code != 0 {
		reason := plan.Errno.Error()
		if plan.Dies {
			reason = vfstest.ErrDead.Error()
		}
		if !strings.Contains(r.stderr, reason) || r.code != f.status {
			t.Errorf("%s: status %d, want %d with %q: %s", what, r.code, f.status, reason, r.stderr)
		}
		again := d.in(left, s.after)
		if again.code == ndls.ExitMismatch && s.after != s.disturbed {
			again = d.in(left, s.disturbed) // the fault came before the new plan was recorded
		}
		if again.code != 0 {
			t.Errorf("%s: the command again: status %d: %s", what, again.code, again.stderr)
			return felt, r.code
		}
	}
	if got := d.committed(t, left); !maps.Equal(got, want) {
		t.Errorf("%s: status %d: %d files, want %d", what, r.code, len(got), len(want))
		for path := range want {
			if got[path] != want[path] {
				t.Errorf("%s: %s, want %s", path, got[path], want[path])
			}
		}
	}
	return felt, r.code
}
