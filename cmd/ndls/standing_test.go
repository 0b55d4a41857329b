package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ndls"

	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
)

// contents are the bytes of the files of a run directory by their names in it.
type contents map[string]string

// read reads the run directory on a disk.
func (d drive) read(t *testing.T, disk vfs.FS) contents {
	t.Helper()
	defer d.mount(disk)()
	all, dir := contents{}, string(d)+"/run"
	if err := vfs.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := vfs.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// change makes files of the run directory on a disk what they are not: gone where they have no bytes.
func (d drive) change(t *testing.T, disk vfs.FS, to map[string]*string) {
	t.Helper()
	defer d.mount(disk)()
	for name, text := range to {
		path := string(d) + "/run/" + name
		err := vfs.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if text != nil {
			_, mkdir := vfs.MkdirAll(filepath.Dir(path), 0o755)
			err = errors.Join(err, mkdir, vfs.WriteFile(path, []byte(*text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// wrecks are the ways in which files of a run directory are taken away, cut, or rolled back to an earlier state of the run. Of
// the records of the journal it takes the first, one amid the others, and the last; where there shall be few, it leaves out files of
// kinds of which it takes others.
func wrecks(now, earlier contents, few bool) map[string]map[string]*string {
	all := map[string]map[string]*string{}
	records := slices.Sorted(maps.Keys(now))
	records = slices.DeleteFunc(records, func(name string) bool { return !strings.HasPrefix(name, "journal/") })
	left := []string{"graph/features/", "graph/nodes", "model/", "predictions/tally", "predictions/depth", "smoothed/", "soft_labels/", "report.html"}
	some := []string{records[0], records[len(records)/2], records[len(records)-1]}
	rolled := func(inside func(name string) bool) map[string]*string {
		back := map[string]*string{}
		for name := range now {
			if inside(name) {
				back[name] = nil
			}
		}
		for name, text := range earlier {
			if inside(name) {
				back[name] = &text
			}
		}
		return back
	}
	for name, text := range now {
		if slices.Contains(records, name) && !slices.Contains(some, name) || few && slices.ContainsFunc(left, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		all["gone "+name] = map[string]*string{name: nil}
		if cut := text[:len(text)/2]; !few || !strings.Contains(name, "/") {
			all["cut "+name] = map[string]*string{name: &cut}
		}
		if was, there := earlier[name]; there && was != text {
			all["earlier "+name] = map[string]*string{name: &was}
		}
	}
	within := func(prefixes ...string) func(name string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		}
	}
	for _, prefixes := range [][]string{{"catalog/"}, {"catalog"}, {"journal/"}, {"run.json"}, {"run.json", "journal/"}, {"catalog", "journal/"}, {"run.json", "catalog"}} {
		all["earlier "+strings.Join(prefixes, " and ")] = rolled(within(prefixes...))
		gone := rolled(within(prefixes...))
		for name := range gone {
			gone[name] = nil
		}
		all["gone "+strings.Join(prefixes, " and ")] = gone
	}
	return all
}

// plainly returns a text without what depends on how lines are laid out.
func plainly(text string) string {
	return strings.Join(strings.Fields(strings.NewReplacer(`\"`, `"`, `\n`, " ", ";", " ", "\\u003c", "<").Replace(text)), " ")
}

// readers are the verbs that change nothing, each with the statuses that it may have where files are damaged that it does not
// read, or reads.
var readers = []string{
	"inspect --run RUN --json", "status --run RUN --json", "verify --run RUN", "gc --run RUN", "report RUN", "diff RUN RUN",
	"export --run RUN --what nodes --format csv --out -", "explain --run RUN --node 1",
}

// TestDamagedDirectories takes each file of a run away, cuts it, or puts an earlier one in its place, once the run is
// complete and once it was killed half way. Whatever verb comes then: no committed file is lost, verbs that read say the same of
// the directory and change nothing, and one that works on it either goes on to the same files or refuses, and changes nothing.
func TestDamagedDirectories(t *testing.T) {
	full := os.Getenv(faultEnv) != ""
	step := 5
	if testing.Short() {
		step = 60
	}
	d := drive("/disks/standing")
	line := tinyRun + tinyGraph
	disk := vfstest.NewMem(faultyDisk)
	count := vfstest.NewFaults(disk, vfstest.Plan{})
	if r := d.in(count, line); r.code != 0 {
		t.Fatal(r.stderr)
	}
	want := d.committed(t, disk)
	killed := func(share float64) *vfstest.Mem {
		part := vfstest.NewMem(faultyDisk)
		if r := d.in(vfstest.NewFaults(part, vfstest.Plan{At: int(share * float64(count.Ops())), Dies: true}), line); r.code == 0 {
			t.Fatal("the run was not killed")
		}
		return part
	}
	earlier := d.read(t, killed(0.3))
	for name, disk := range map[string]*vfstest.Mem{"complete": disk, "killed": killed(0.7)} {
		t.Run(name, func(t *testing.T) {
			before := d.committed(t, disk)
			tried, refused, hurt := 0, 0, 0
			all := wrecks(d.read(t, disk), earlier, !full)
			for i, wreck := range slices.Sorted(maps.Keys(all)) {
				if !full && i%step > 0 && wreck != "gone catalog" && wreck != "gone catalog.parquet" && wreck != "earlier catalog" {
					continue
				}
				bad := disk.Clone()
				d.change(t, bad, all[wreck])
				verdict, readable := d.agree(t, wreck, bad)
				if verdict != "" {
					hurt++
				}
				workers := []string{line, collect}
				if full {
					workers = append(workers, strings.Replace(line, "run ", "partition ", 1), strings.Replace(tinyRun, "run ", "smooth ", 1), strings.Replace(tinyRun, "run ", "train ", 1), line+" --resume=false")
				}
				for _, verb := range workers {
					if verb = withoutModel(verb); d.works(t, wreck, bad, verb, verdict, readable, before, want) {
						refused++
					}
					tried++
				}
			}
			t.Logf("%d wrecks, %d of them noticed without reading data; %d commands that work on them, %d refused", len(all), hurt, tried, refused)
		})
	}
}

// withoutModel leaves out of a command line the options that its verb does not have.
func withoutModel(line string) string {
	verb, _, _ := strings.Cut(line, " ")
	drop := map[string][]string{
		"partition": {"--runs 1", "--epochs 1", "--hidden 8", "--probes 16"}, "smooth": {"--runs 1", "--epochs 1", "--hidden 8", "--probes 16"}, "train": {"--probes 16"},
	}
	for _, option := range drop[verb] {
		line = strings.Replace(line, option+" ", "", 1)
	}
	return line
}

// agree has verbs that read a damaged run directory say the same of it, and returns what that is, and whether they can read it.
func (d drive) agree(t *testing.T, wreck string, disk *vfstest.Mem) (verdict string, readable bool) {
	t.Helper()
	start := d.read(t, disk)
	here := func(verb string) result { return d.in(disk, strings.ReplaceAll(verb, "RUN", faultyDisk+"/run")) }
	var summary ndls.RunSummary
	listed := here("list " + faultyDisk + " --json")
	if _, there := start["run.json"]; there {
		if err := json.Unmarshal([]byte(listed.stdout), &summary); err != nil || listed.code != 0 {
			t.Errorf("%s: list: %v, status %d: %s", wreck, err, listed.code, listed.stderr)
		}
		verdict, readable = summary.Problem, summary.State != ""
	} else {
		verdict = strings.TrimPrefix(here("inspect --run RUN").stderr, "ndls: ")
	}
	for _, verb := range readers {
		r := here(verb)
		said := strings.Contains(plainly(r.stdout+r.stderr), plainly(verdict))
		switch name, _, _ := strings.Cut(verb, " "); {
		case !said:
			t.Errorf("%s: list says %q, and %s\n%s%s", wreck, verdict, verb, r.stdout, r.stderr)
		case !readable && r.code != ndls.ExitCorrupt:
			t.Errorf("%s: %s: status %d: %s", wreck, verb, r.code, r.stderr)
		case readable && name == "verify" && verdict != "" && r.code != ndls.ExitCorrupt:
			t.Errorf("%s: verify: status %d: %s%s", wreck, r.code, r.stdout, r.stderr)
		case readable && (name == "inspect" || name == "status" || name == "gc") && r.code != 0:
			if r.code != ndls.ExitCorrupt || name != "inspect" { // it reads the summary of the graph
				t.Errorf("%s: %s: status %d: %s", wreck, verb, r.code, r.stderr)
			}
		case r.code == ndls.ExitInterrupted, r.code == ndls.ExitUsage:
			t.Errorf("%s: %s: status %d: %s", wreck, verb, r.code, r.stderr)
		}
	}
	if end := d.read(t, disk); !maps.Equal(start, end) {
		t.Errorf("%s: verbs that read have changed the run directory", wreck)
	}
	return verdict, readable
}

// works has a verb work on a clone of a damaged run directory, and reports whether it was refused. before are the files
// that were committed, want those of the whole run.
func (d drive) works(t *testing.T, wreck string, bad *vfstest.Mem, verb, verdict string, readable bool, before, want map[string]string) (refused bool) {
	t.Helper()
	disk, start := bad.Clone(), d.read(t, bad)
	r := d.in(disk, verb)
	end := d.read(t, disk)
	what := fmt.Sprintf("%s: %.20s", wreck, verb)
	discards := strings.Contains(verb, "--resume=false")
	for name := range before {
		if was, there := start[name]; there && end[name] != was && !discards && want[name] != "" {
			t.Errorf("%s (status %d): %s was committed, and is gone or another one", what, r.code, name)
		}
	}
	switch {
	case r.code == ndls.ExitError && strings.HasPrefix(verb, "train ") && (strings.Contains(r.stderr, "run this first: ndls smooth ") || strings.Contains(r.stderr, "run ndls smooth first")):
		return true // an earlier record says so, and the rest of the directory agrees with it
	case r.code == ndls.ExitCorrupt || r.code == ndls.ExitMismatch:
		if !maps.Equal(start, end) {
			t.Errorf("%s: status %d, and the run directory has changed: %s", what, r.code, r.stderr)
		}
		return true
	case r.code != 0:
		t.Errorf("%s: status %d: %s", what, r.code, r.stderr)
	case verdict != "" && !discards && (strings.HasPrefix(verb, "gc ") || !readable && start["run.json"] != ""):
		t.Errorf("%s: status 0, and verbs that read say %q", what, verdict)
	case strings.HasPrefix(verb, "run "):
		if wreck == "gone graph/hops/part-00000.hops" {
			break // whoever reads it makes it again: nobody has to, once the run is complete
		}
		if got := d.committed(t, disk); !maps.Equal(got, want) && !discards {
			t.Errorf("%s: %d files, want %d", what, len(got), len(want))
		}
		if v := d.in(disk, "verify --run "+faultyDisk+"/run"); v.code != 0 && !strings.HasPrefix(wreck, "cut ") {
			t.Errorf("%s: status 0, and then verify: status %d: %s", what, v.code, v.stderr)
		}
	}
	return false
}

// TestKilledWhileDiscarding replaces the dataset, has a run discard what it holds, and kills it before each operation of
// that, with and without power. The same command without the wish to discard then gives what the new dataset asks for, or says that the
// old run is there still: no file of the old dataset is taken for one of the new.
func TestKilledWhileDiscarding(t *testing.T) {
	whole(t)
	d := drive("/disks/discard")
	edges := filepath.Join(t.TempDir(), "edges.tsv")
	graph := func(seed uint64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 1))
		var text bytes.Buffer
		for range 300 {
			fmt.Fprintf(&text, "%d\t%d\n", 10+r.IntN(60), 10+r.IntN(60))
		}
		if err := os.WriteFile(edges, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const common = " --run " + faultyDisk + "/run --memory 256MiB --threads 1 --quiet"
	partition, lsi := "partition --dataset edges:"+edges+common, "lsi --probes 16"+common
	in := func(disk vfs.FS, line string) result { return d.in(disk, line) }
	peace := func(disk vfs.FS, line string) {
		t.Helper()
		if r := in(disk, line); r.code != 0 {
			t.Fatalf("%s: status %d: %s", line, r.code, r.stderr)
		}
	}
	graph(1)
	start := vfstest.NewMem(faultyDisk)
	peace(start, partition)
	peace(start, lsi)
	old := d.committed(t, start)
	graph(2)
	clean := start.Clone()
	count := vfstest.NewFaults(clean, vfstest.Plan{})
	peace(count, partition+" --resume=false")
	peace(clean, lsi)
	want := d.committed(t, clean)
	for name, sum := range old {
		if want[name] == sum && !strings.HasPrefix(name, "graph/features") {
			t.Fatalf("%s is the same for both datasets", name)
		}
	}
	step := max(count.Ops()/8, 1)
	if text := os.Getenv(faultEnv); text != "" {
		step, _ = strconv.Atoi(text)
		step = max(step, 1)
	}
	kills, kept := 0, 0
	for at := 1; at <= count.Ops(); at += step {
		for name, share := range map[string]float64{"killed": 1, "power failure": 0.5} {
			disk := start.Clone()
			faults := vfstest.NewFaults(disk, vfstest.Plan{At: at, Dies: true})
			r := in(faults, partition+" --resume=false")
			what := fmt.Sprintf("%s at %s (status %d)", name, faults.Felt(), r.code)
			left := disk.CrashClone(rand.New(rand.NewPCG(7, uint64(at))), share)
			if name == "killed" {
				left = disk.Clone()
			}
			kills++
			again := in(left, partition)
			if again.code == ndls.ExitMismatch && strings.Contains(again.stderr, "other bytes") {
				kept++
				if got := d.committed(t, left); !maps.Equal(got, old) {
					t.Errorf("%s: the old run is told to be there, and it has %d files of %d", what, len(got), len(old))
				}
				again = in(left, partition+" --resume=false")
			}
			if again.code != 0 {
				t.Errorf("%s: again: status %d: %s", what, again.code, again.stderr)
				continue
			}
			if r := in(left, lsi); r.code != 0 {
				t.Errorf("%s: lsi: status %d: %s", what, r.code, r.stderr)
			}
			if got := d.committed(t, left); !maps.Equal(got, want) {
				t.Errorf("%s: %d files, want %d", what, len(got), len(want))
				for path := range got {
					if got[path] == old[path] {
						t.Errorf("%s: %s is of the old dataset", what, path)
					}
				}
			}
		}
	}
	t.Logf("%d kills at %d operations, in %d of them before anything was discarded", kills, count.Ops(), kept)
	if kept == 0 || kept == kills {
		t.Errorf("of %d kills %d came before anything was discarded", kills, kept)
	}
}

// TestLeftoversOfInfer kills infer before operations of it. The same command then gives what it gives without that. A file that somebody
// has put beside what is left is neither removed nor written over.
func TestLeftoversOfInfer(t *testing.T) {
	whole(t)
	d := drive("/disks/infer")
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edges, nodes := "src,dst\n", "id,x,y,label\n"
	for i := range 40 {
		edges += fmt.Sprintf("%d,%d\n%d,%d\n", i, (i+1)%40, i, (i+7)%40)
		nodes += fmt.Sprintf("%d,%d,%d,%d\n", i, i%3, i%5, i%2)
	}
	write("edges.csv", edges)
	write("nodes.csv", nodes)
	write("new-edges.csv", "src,dst\n100,1\n100,101\n101,5\n")
	write("new-nodes.csv", "id,x,y\n100,1,2\n101,2,1\n")
	disk := vfstest.NewMem(faultyDisk)
	if r := d.in(disk, "run --run "+faultyDisk+"/run --memory 256MiB --threads 1 --quiet --runs 1 --epochs 2 --hidden 8 --probes 16 --split random:8,8 --keep-hops 0..3 --kmax 3 --dataset table:"+
		dir+"/edges.csv?nodes="+dir+"/nodes.csv&id=id&features=x,y&label=label"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	line := "infer --run " + faultyDisk + "/run --memory 256MiB --threads 1 --quiet --out " + faultyDisk + "/new --dataset table:" + dir + "/new-edges.csv?nodes=" + dir + "/new-nodes.csv&id=id&features=x,y"
	out := func(disk vfs.FS) contents {
		t.Helper()
		defer d.mount(disk)()
		all := contents{}
		err := vfs.WalkDir(string(d)+"/new", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := vfs.ReadFile(path)
			all[strings.TrimPrefix(path, string(d)+"/new/")] = string(text)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return all
	}
	clean := disk.Clone()
	count := vfstest.NewFaults(clean, vfstest.Plan{})
	if r := d.in(count, line); r.code != 0 {
		t.Fatal(r.stderr)
	}
	want := out(clean)
	if len(want) < 4 || want["infer.unfinished"] != "" {
		t.Fatalf("infer leaves %v", slices.Sorted(maps.Keys(want)))
	}
	left := 0
	for at := 1; at <= count.Ops(); at += 7 {
		killed := disk.Clone()
		faults := vfstest.NewFaults(killed, vfstest.Plan{At: at, Dies: true})
		if r := d.in(faults, line); r.code == 0 {
			t.Fatalf("operation %d does not come", at)
		}
		if some := out(killed); len(some) > 0 {
			left++
			foreign := killed.Clone()
			func() {
				defer d.mount(foreign)()
				if err := vfs.WriteFile(string(d)+"/new/notes.txt", []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}()
			before := out(foreign)
			if r := d.in(foreign, line); r.code == 0 || !strings.Contains(r.stderr, "notes.txt") || !maps.Equal(out(foreign), before) {
				t.Errorf("%s, and a file of the user's: status %d: %s", faults.Felt(), r.code, r.stderr)
			}
		}
		if r := d.in(killed, line); r.code != 0 {
			t.Errorf("%s: again: status %d: %s", faults.Felt(), r.code, r.stderr)
		} else if got := out(killed); !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Errorf("%s: %v, want %v", faults.Felt(), slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	if left == 0 {
		t.Error("no kill has left anything")
	}
	// An error leaves the folder empty, but for what is not infer's.
	if r := d.in(vfstest.NewFaults(clean, vfstest.Plan{}), line); r.code == 0 || !strings.Contains(r.stderr, "holds ") {
		t.Errorf("a folder with results: status %d: %s", r.code, r.stderr)
	}
	failed := disk.Clone()
	if r := d.in(vfstest.NewFaults(failed, vfstest.Plan{At: count.Ops() * 2 / 3, Errno: syscall.EIO}), line); r.code == 0 || len(out(failed)) > 0 {
		t.Errorf("a broken disk: status %d, and %v is left", r.code, slices.Sorted(maps.Keys(out(failed))))
	}
}
