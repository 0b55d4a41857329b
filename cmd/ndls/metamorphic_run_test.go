package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ndls"
	"ndls/catalog"
	hookpoint "ndls/internal/hook"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// grounds holds what draws have in common.
type grounds struct {
	// program is ndls with hooks, "" if draws start no processes.
	program string
	// server is nil if there is none: draws of an object store are then made in a folder.
	server *storagetest.Server

	mu    sync.Mutex
	tally map[string]int
}

// troubleKind is how a process meets trouble, how it ends then, and what it says.
type troubleKind struct {
	plan   vfstest.Plan
	signal error
	status int
	says   string
}

var troubleKinds = map[string]troubleKind{
	"broken disk":  {plan: vfstest.Plan{Errno: syscall.EIO}, status: ndls.ExitError, says: syscall.EIO.Error()},
	"full disk":    {plan: vfstest.Plan{Errno: syscall.ENOSPC}, status: ndls.ExitBudget, says: syscall.ENOSPC.Error()},
	"loss of disk": {plan: vfstest.Plan{Dies: true}, status: ndls.ExitError, says: vfstest.ErrDead.Error()},
	"SIGINT":       {signal: ndls.ErrInterrupted, status: ndls.ExitInterrupted, says: "interrupted by the user"},
	"SIGTERM":      {signal: ndls.ErrTerminated, status: ndls.ExitTerminated, says: "interrupted by SIGTERM"},
}

const (
	// attemptLimit bounds an attempt.
	attemptLimit = 4 * time.Minute
	// lives is the number of times that a process is started again if it has ended before its time.
	lives = 4
	// tooEarly is the pause after a worker that has found a run which is complete, under
	// another plan, and which the coordinator is about to discard.
	tooEarly = 200 * time.Millisecond
	// disk is the place in command lines for the disk of a process of this test.
	disk = "DISK"
)

// round is a draw that is being made.
type round struct {
	*testing.T
	draw
	*grounds
	files string

	// device is the disk, of which command lines see the folder root.
	device vfs.FS
	mem    *vfstest.Mem // device, where that can lose power
	root   string
	// run is the value of --run.
	run string
	// ops are the operations of the undisturbed run on its disk.
	ops       int
	discards  bool
	processes atomic.Int64
}

// play makes the draw: the bytes that are wanted, then the attempts, then the comparison.
func (r *round) play() {
	r.write()
	want := r.reference()
	look := r.settle()
	for i, a := range r.attempts {
		r.attempt(a, i == len(r.attempts)-1)
		if r.Failed() {
			return
		}
	}
	got := r.committed(look())
	for path := range want {
		if got[path] != want[path] {
			r.Errorf("%s is %q, want %q", path, got[path], want[path])
		}
	}
	for path := range got {
		if want[path] == "" {
			r.Errorf("%s should not be there", path)
		}
	}
	r.exports()
}

// exports writes an artifact with one thread and with many, with much memory and with little: the
// same bytes. Not every run has every artifact.
func (r *round) exports() {
	line := "export --run RUN --quiet --out - --what " + r.export
	want, _ := r.command(context.Background(), trouble{}, line+" --threads 1 --memory 1GiB")
	got, _ := r.command(context.Background(), trouble{}, line+" --threads 16 --memory 160MiB")
	if got.code != want.code || got.stdout != want.stdout {
		r.Errorf("%s: %d bytes and status %d with much memory, %d and %d with little, or other ones\n%s", line, len(want.stdout), want.code, len(got.stdout), got.code, got.stderr)
	}
	r.count("exports", want.code == 0)
	r.count("exports of what the run has not", want.code != 0)
	if want.code != 0 && !strings.Contains(want.stderr, "has no ") {
		r.Errorf("%s: status %d\n%s", line, want.code, want.stderr)
	}
}

// reference makes the run in one process, with much memory and no trouble.
func (r *round) reference() map[string]string {
	m := vfstest.NewMem(faultyDisk)
	count := vfstest.NewFaults(m, vfstest.Plan{})
	r.device, r.root, r.run = count, faultyDisk, disk+"/run"
	res, _ := r.command(context.Background(), trouble{}, r.job("run")+" --memory 1GiB --threads 1")
	if res.code != 0 {
		r.Fatalf("the undisturbed run: status %d\n%s", res.code, res.stderr)
	}
	r.ops = count.Ops()
	if strings.Contains(res.stderr, "WARN") {
		r.Logf("the undisturbed run: %s", res.stderr)
	}
	store, err := r.open(m, faultyDisk)
	if err != nil {
		r.Fatal(err)
	}
	want := r.committed(store)
	if len(want) < 3 {
		r.Fatalf("the undisturbed run leaves only %v", want)
	}
	return want
}

// open opens the run directory on a disk of this test, past all faults.
func (r *round) open(device vfs.FS, root string) (storage.Store, error) {
	name := r.name()
	r.Cleanup(vfs.Mount(name, vfstest.Moved(device, root, name)))
	return storage.NewLocal(name + "/run")
}

// name is a folder that the operating system does not have and no one else uses.
func (r *round) name() string { return fmt.Sprintf("/disks/draw%d-%d", r.seed, r.processes.Add(1)) }

// settle prepares what holds the run directory, and returns how to look at it in the end.
func (r *round) settle() (look func() storage.Store) {
	world := r.world
	if world == bucket && r.server == nil {
		world = folder
	}
	r.count("draws in "+string(world), true)
	r.root, r.run = faultyDisk, disk+"/run"
	opened := func(s storage.Store, err error) storage.Store {
		if err != nil {
			r.Fatal(err)
		}
		return s
	}
	switch world {
	case folder:
		r.root = r.TempDir()
		r.device = vfs.OS{}
		return func() storage.Store { return opened(storage.NewLocal(filepath.Join(r.root, "run"))) }
	case bucket:
		broken, rng := storagetest.Seeded(r.seed), rand.New(rand.NewPCG(r.seed, 3))
		proxy, url := storagetest.StartProxy(r.T, r.server.URL, func(q *http.Request) storagetest.Fault {
			if rng.IntN(3) > 0 {
				return storagetest.Pass
			}
			return broken(q)
		})
		r.run = storagetest.BucketURI(url, storagetest.Bucket, fmt.Sprint("draw", r.seed))
		r.mem = vfstest.NewMem(faultyDisk)
		r.device = r.mem
		r.ops /= 20
		return func() storage.Store {
			requests := proxy.Requests()
			r.grounds.mu.Lock()
			r.tally["requests to an object store"] += requests
			r.tally["requests that were broken"] += requests - proxy.Counts()[storagetest.Pass]
			r.grounds.mu.Unlock()
			return opened(storage.NewLocal(filepath.Join(r.server.Folder, fmt.Sprint("draw", r.seed))))
		}
	}
	r.mem = vfstest.NewMem(faultyDisk)
	r.device = r.mem
	return func() storage.Store { return opened(r.open(r.mem, faultyDisk)) }
}

// committed lists what the catalogue names, after a check of the bytes.
func (r *round) committed(store storage.Store) map[string]string {
	r.Helper()
	ctx := context.Background()
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		r.Fatal(err)
	}
	sums := map[string]string{}
	for _, e := range cat.Entries("") {
		if err := cat.Verify(ctx, e); err != nil {
			r.Error(err)
		}
		sums[e.Path] = e.Checksum
	}
	return sums
}

// job is the command line of a verb that does the whole job.
func (r *round) job(verb string) string {
	return verb + " --dataset " + r.dataset + " --run RUN --quiet" + r.line(allVerbs...)
}

// scratch says where temporary files are, where that is not the run directory.
func (r *round) scratch() string {
	if strings.HasPrefix(r.run, "s3:") {
		return " --scratch " + disk + "/scratch"
	}
	return ""
}

// args splits a command line, once it names the files of this draw.
func (r *round) args(line, disk string) []string {
	args := strings.Fields(line)
	for i, arg := range args {
		if i > 0 && args[i-1] == "--kernel" && !hasKernel(arg) {
			arg = "auto"
		}
		args[i] = strings.NewReplacer("FILES", r.files, "RUN", strings.ReplaceAll(r.run, "DISK", disk), "DISK", disk).Replace(arg)
	}
	return args
}

// command runs a command line in this process, with trouble, and returns what it did and
// whether it felt the trouble.
func (r *round) command(ctx context.Context, t trouble, line string) (res result, felt string) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	kind := troubleKinds[t.kind]
	plan := kind.plan
	if t.kind != "" {
		plan.At = 1 + int(t.after*float64(r.ops))
	}
	if kind.signal != nil {
		plan.Then = func() { cancel(kind.signal) }
	}
	faults, name := vfstest.NewFaults(r.device, plan), r.name()
	defer vfs.Mount(name, vfstest.Moved(faults, r.root, name))()
	var out, errs bytes.Buffer
	code := run(ctx, r.args(line, name), &out, &errs)
	felt = faults.Felt()
	r.count("met: "+t.kind, felt != "")
	return result{code, out.String(), errs.String()}, felt
}

// attempt begins the job once. The last one is to end well.
func (r *round) attempt(a attempt, last bool) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), attemptLimit, ndls.ErrTerminated)
	defer cancel()
	extra := ""
	if a.otherwise {
		other := strings.NewReplacer("--kmax ", "--kmax 1", "--seed ", "--seed 7").Replace(r.job("run"))
		if res, _ := r.command(ctx, trouble{}, other+r.scratch()+" --memory 512MiB --threads 2"); res.code != 0 {
			r.Errorf("another plan: status %d\n%s", res.code, res.stderr)
			return
		}
		r.discards, extra = true, " --resume=false"
	}
	status, text := r.carryOut(ctx, a, extra)
	if status == ndls.ExitMismatch && r.discards && extra == "" {
		// The trouble came before the plan was recorded.
		status, text = r.carryOut(ctx, a, " --resume=false")
	}
	switch {
	case ctx.Err() != nil:
		r.Errorf("%s: takes longer than %v\n%s", a, attemptLimit, text)
	case last && status != 0:
		r.Errorf("%s: status %d\n%s", a, status, text)
	}
	r.count("attempts", true)
	r.count("attempts that ended well", status == 0)
	r.count("attempts with workers", a.workers > 0)
	r.count("attempts with worker processes", a.workers > 0 && a.processes)
	r.count("attempts with workers, intervals", a.share == "intervals")
	r.count("attempts with workers, grid", strings.HasPrefix(a.share, "grid"))
	if a.cuts && r.mem != nil {
		r.mem = r.mem.CrashClone(rand.New(rand.NewPCG(r.seed, 9)), a.keeps)
		r.device = r.mem
		r.count("met: power failure", true)
	}
	if a.collects && !r.Failed() {
		res, _ := r.command(ctx, trouble{}, "gc --delete --quiet --run RUN")
		// The trouble may have come before there was a run.
		if res.code != 0 && !strings.Contains(res.stderr, "holds no run") && !strings.Contains(res.stderr, "there is no f") {
			r.Errorf("gc: status %d\n%s", res.code, res.stderr)
		}
	}
}

// carryOut begins the job as a says, and returns how that ends, and its errors.
func (r *round) carryOut(ctx context.Context, a attempt, extra string) (status int, text string) {
	switch {
	case a.workers > 0 && a.processes && r.program != "":
		return r.asProcesses(ctx, a, extra)
	case a.workers > 0:
		return r.together(ctx, a, extra)
	}
	lines := []string{r.job("run")}
	if a.stages != nil {
		lines = nil
		for _, verb := range a.stages {
			line := verb + " --run RUN --quiet" + r.line(verb)
			if verb == "partition" {
				line += " --dataset " + r.dataset
			}
			lines = append(lines, line)
		}
	}
	for _, line := range lines {
		resources := a.resources[0]
		if verb, _, _ := strings.Cut(line, " "); verb == "partition" || verb == "lsi" {
			resources, _, _ = strings.Cut(resources, " --block-columns")
		}
		res, felt := r.command(ctx, a.troubles[0], line+resources+r.scratch()+extra)
		r.judge(line, res, a.troubles[0], felt)
		if status, text = res.code, res.stderr; status != 0 {
			break
		}
	}
	return status, text
}

// mayBe reports whether an attempt may end with a status without trouble: the plan of before
// is not discarded yet, or the memory that was drawn is too small and that is said. The
// test kills the coordinator if a worker ends with that message first, which gives status -1.
func (r *round) mayBe(status int, text string) bool {
	said := strings.Contains(text, "is enough") || strings.Contains(text, "give it --memory")
	refused := said && (status == ndls.ExitBudget || status == -1)
	r.count("refused for lack of memory", refused)
	return refused || status == ndls.ExitMismatch && r.discards
}

// judge reports whether a process that works alone ended as it may.
func (r *round) judge(line string, res result, t trouble, felt string) {
	kind := troubleKinds[t.kind]
	switch {
	case res.code == 0 || r.mayBe(res.code, res.stderr):
	case felt == "":
		r.Errorf("%s: status %d without trouble\n%s", line, res.code, res.stderr)
	case res.code != kind.status || !strings.Contains(res.stderr, kind.says):
		r.Errorf("%s at %s: status %d, want %d with %q\n%s\n%s", t.kind, felt, res.code, kind.status, kind.says, res.stderr, line)
	}
}

// coordinatorLine and workerLine are the command lines of a cluster.
func (r *round) coordinatorLine(a attempt) string {
	// A busy machine may hold a worker up for seconds.
	return fmt.Sprintf("%s --workers %d --parallel %s --lease 10s --checkpoint 1ms%s", r.job("coordinator"), a.workers, a.share, r.scratch())
}

func (r *round) workerLine(a attempt, i int) string {
	return "worker --run RUN --quiet --wait 1m" + a.resources[i%len(a.resources)] + r.scratch()
}

// together has a coordinator and workers in this process, each with trouble of its own.
// Who ends before its time is started again, without trouble.
func (r *round) together(ctx context.Context, a attempt, extra string) (status int, text string) {
	working, dismiss := context.WithCancelCause(ctx)
	var over atomic.Bool
	var wg sync.WaitGroup
	var said strings.Builder // of all, where the coordinator's tells too little
	var mu sync.Mutex
	say := func(who string, res result, felt string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&said, "%s: status %d, felt %q\n%s\n", who, res.code, felt, res.stderr)
	}
	troubled := false
	for _, t := range a.troubles {
		troubled = troubled || t.kind != ""
	}
	wg.Go(func() {
		defer over.Store(true)
		for life := range lives {
			t := trouble{}
			if life == 0 {
				t = a.troubles[0]
			}
			res, felt := r.command(ctx, t, r.coordinatorLine(a)+extra)
			say("coordinator", res, felt)
			status = res.code
			if stopped := status == ndls.ExitTerminated || status == ndls.ExitInterrupted; !stopped || ctx.Err() != nil {
				break
			}
		}
		if status != 0 {
			dismiss(ndls.ErrTerminated)
		}
	})
	for i := range a.workers {
		wg.Go(func() {
			for life := 0; life < lives; life++ {
				t := trouble{}
				if life == 0 {
					t = a.troubles[i+1]
					t.after /= float64(a.workers + 1)
				}
				// Without a coordinator it would wait long to give its work back.
				res, felt := r.command(working, t, r.workerLine(a, i)+" --wait 5s")
				say(fmt.Sprint("worker ", i), res, felt)
				if over.Load() || working.Err() != nil {
					return
				}
				if res.code == 0 {
					time.Sleep(tooEarly)
					life--
				}
			}
		})
	}
	wg.Wait()
	dismiss(nil)
	text = said.String()
	if status != 0 && !r.mayBe(status, text) && (!troubled || status != ndls.ExitError && status != ndls.ExitBudget) {
		r.Errorf("%s: the coordinator ended with %d\n%s", a, status, text)
	}
	return status, text
}

// asProcesses has a coordinator and workers as processes of the operating system. Who dies
// of a hook is started again with the next one, in the end without.
func (r *round) asProcesses(ctx context.Context, a attempt, extra string) (status int, text string) {
	own := filepath.Join(r.files, "disk")
	if !strings.HasPrefix(r.run, "s3:") {
		own = r.root
	}
	lines := []string{r.coordinatorLine(a) + extra}
	for i := range a.workers {
		lines = append(lines, r.workerLine(a, i))
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var over atomic.Bool
	var said strings.Builder
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for i, line := range lines {
		wg.Go(func() {
			hooks := a.hooks[i]
			for {
				hook := ""
				if len(hooks) > 0 {
					hook, hooks = hooks[0], hooks[1:]
				}
				cmd := exec.CommandContext(ctx, r.program, r.args(line, own)...)
				cmd.Env = append(os.Environ(), hookpoint.Variable+"="+hook)
				cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				var errs bytes.Buffer
				cmd.Stderr = &errs
				_ = cmd.Run()
				code := cmd.ProcessState.ExitCode()
				killed := hook != "" && (code == -1 || code == ndls.ExitTerminated)
				r.count("killed by a hook: "+hook[strings.LastIndex(hook, ":")+1:], killed)
				if killed && ctx.Err() == nil {
					continue
				}
				if i > 0 && code == 0 && !over.Load() {
					time.Sleep(tooEarly)
					if !over.Load() && ctx.Err() == nil {
						continue
					}
				}
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(&said, "process %d, hook %q: status %d\n%s\n", i, hook, code, errs.String())
				if i == 0 {
					status = code
					over.Store(true)
				}
				if code != 0 {
					stop()
				}
				return
			}
		})
	}
	wg.Wait()
	if text = said.String(); status != 0 && !r.mayBe(status, text) {
		r.Errorf("%s: the coordinator ended with %d\n%s", a, status, text)
	}
	return status, text
}
