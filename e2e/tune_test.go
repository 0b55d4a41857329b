package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"ndls/tune"
)

// tuned is a search of some moments, with more options.
func tuned(dir string, more ...string) []string {
	return append([]string{
		"tune", "--dataset", "synthetic:nodes=3000,edges=15000,features=40,classes=4,seed=3", "--run", dir, "--quiet",
		"--runs", "2", "--probes", "32", "--memory", "256MiB", "--threads", "2",
		"--try", "epsilon=0.05,0.1", "--try", "lr=log:0.003:0.1",
	}, more...)
}

// found returns the result of a search without the seconds.
func found(t testing.TB, dir string) (table []byte, r tune.Result) {
	t.Helper()
	table, err := os.ReadFile(filepath.Join(dir, tune.TableName))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, tune.ResultName))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Trials {
		r.Trials[i].Seconds = 0
	}
	r.Command = nil // it names the folder
	return table, r
}

// TestKilledSearch kills searches at ten moments each, resumes them, and compares what they have found with that of a
// search in peace: one with options of label smoothing, and one that trains the better trials longer.
func TestKilledSearch(t *testing.T) {
	whole(t)
	t.Parallel()
	for name, more := range map[string][]string{
		"labels":  {"--epochs", "20", "--trials", "6", "--try", "label-rule=ndls,cs", "--try", "label-kmax=3,5"},
		"halving": {"--halving", "--epochs", "60", "--patience", "16", "--trials", "24"},
	} {
		t.Run(name, func(t *testing.T) { killSearches(t, more) })
	}
}

// killSearches does so with searches that have more options.
func killSearches(t *testing.T, more []string) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "peace")
	start := time.Now()
	run(t, tuned(dir, more...)...)
	took := time.Since(start)
	table, want := found(t, dir)
	seed := uint64(time.Now().UnixNano())
	t.Logf("moments drawn with seed %d over %v", seed, took)
	rng := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for dirs := 0; killed < 10; dirs++ {
		if dirs > 20 {
			t.Fatalf("only %d searches could be killed in time", killed)
		}
		dir := filepath.Join(t.TempDir(), fmt.Sprint("killed", dirs))
		for range 4 {
			cmd := exec.Command(binary, tuned(dir, more...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Duration(rng.Int64N(int64(took))), func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			if err == nil {
				break
			}
			if s := exitStatus(err); s != -1 {
				t.Fatalf("a killed search ended with status %d", s)
			}
			killed++
		}
		run(t, tuned(dir, more...)...)
		gotTable, got := found(t, dir)
		if string(gotTable) != string(table) || !reflect.DeepEqual(got, want) {
			t.Errorf("a killed search found\n%s\nwant\n%s", gotTable, table)
		}
	}
}
