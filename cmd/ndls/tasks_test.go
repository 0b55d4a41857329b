package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestTasks takes labels and numbers through the verbs that read what models say: run, explain, infer and tune.
func TestTasks(t *testing.T) {
	const nodes, further = 300, 20
	random := rand.New(rand.NewPCG(3, 4))
	old, fresh := &strings.Builder{}, &strings.Builder{}
	fmt.Fprintln(old, "id,f0,f1,a,b,size,split")
	fmt.Fprintln(fresh, "id,f0,f1")
	for i := range nodes + further {
		x, y := random.NormFloat64(), random.NormFloat64()
		if i >= nodes {
			fmt.Fprintf(fresh, "%d,%g,%g\n", i, x, y)
			continue
		}
		label := map[bool]int{true: 1}
		fmt.Fprintf(old, "%d,%g,%g,%d,%d,%g,%s\n", i, x, y, label[x > 0], label[x+y > 0], 100+10*x, []string{"train", "valid", "test"}[i%3])
	}
	edges := func(from, below, n int) string {
		text := "src,dst\n"
		for range n {
			text += fmt.Sprintf("%d,%d\n", from+random.IntN(below-from), random.IntN(nodes))
		}
		return text
	}
	dir := t.TempDir()
	known := "table:" + write(t, filepath.Join(dir, "edges.csv"), edges(0, nodes, 900)) + "?nodes=" +
		write(t, filepath.Join(dir, "nodes.csv"), old.String()) + "&id=id&features=f0,f1&split=split&label="
	later := "table:" + write(t, filepath.Join(dir, "later.csv"), edges(nodes, nodes+further, 60)) + "?nodes=" +
		write(t, filepath.Join(dir, "new.csv"), fresh.String()) + "&id=id&features=f0,f1"
	for task, c := range map[string]struct{ columns, measure, shown string }{
		"labels":     {"a,b", "ROC AUC", "\na "},
		"regression": {"size", "R²", "\nsize "},
	} {
		t.Run(task, func(t *testing.T) {
			run := filepath.Join(dir, task)
			expect(t, 0, c.measure, "run", "--dataset", known+c.columns, "--task", task, "--run", run, "--runs", "1", "--epochs", "10", "--kmax", "12",
				"--keep-hops", "0..12", "--targets", "all", "--quiet")
			expect(t, 0, c.shown, "explain", "--run", run, "--node", "5", "--quiet")
			expect(t, 0, fmt.Sprint(further, " new nodes"), "infer", "--run", run, "--dataset", later, "--out", filepath.Join(dir, task+"-new"), "--quiet")
			expect(t, 0, "trials by the "+c.measure, "tune", "--dataset", known+c.columns, "--task", task, "--run", filepath.Join(dir, task+"-tuned"),
				"--trials", "2", "--epochs", "5", "--kmax", "12", "--quiet")
			expect(t, 0, "", "verify", "--run", run, "--quiet")
		})
	}
}
