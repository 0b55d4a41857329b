package ndls_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/arrow/go/v14/arrow/array"

	"ndls"
)

// config is a small run of the built-in graph in a folder of its own.
func config() (c ndls.Config, remove func()) {
	dir, err := os.MkdirTemp("", "ndls-example")
	if err != nil {
		panic(err)
	}
	return ndls.Config{
		Run: filepath.Join(dir, "run"), Dataset: "karate:",
		Resources: ndls.Resources{Memory: 256 << 20, Threads: 1},
		Options: func(o *ndls.Options) {
			o.LSI.Mode, o.LSI.Epsilon = "influence-exact", 0.05
		},
	}, func() { _ = os.RemoveAll(dir) }
}

func ExampleRun() {
	c, remove := config()
	defer remove()
	d, err := ndls.Run(context.Background(), c, ndls.StagePartition, ndls.StageLSI)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := d.Report(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Record().State, report.Dataset.Nodes, "nodes,", report.LSI.Max, "hops at most")
	// Output: COMPLETE 34 nodes, 18 hops at most
}

func ExampleOpen() {
	c, remove := config()
	defer remove()
	ctx := context.Background()
	if _, err := ndls.Run(ctx, c, ndls.StagePartition, ndls.StageLSI); err != nil {
		fmt.Println(err)
		return
	}
	d, err := ndls.Open(ctx, c.Run)
	if err != nil {
		fmt.Println(err)
		return
	}
	checked, err := d.Verify(ctx, ndls.Part{})
	fmt.Println(d.Record().State, checked.Files > 0, err)
	// Output: COMPLETE true <nil>
}

func ExampleDirectory_Records() {
	c, remove := config()
	defer remove()
	ctx := context.Background()
	d, err := ndls.Run(ctx, c, ndls.StagePartition)
	if err != nil {
		fmt.Println(err)
		return
	}
	degrees := map[int64]uint32{}
	for batch, err := range d.Records(ctx, "nodes") {
		if err != nil {
			fmt.Println(err)
			return
		}
		id, degree := batch.Column(0).(*array.Int64), batch.Column(1).(*array.Uint32)
		for i := range int(batch.NumRows()) {
			degrees[id.Value(i)] = degree.Value(i)
		}
	}
	fmt.Println(len(degrees), "nodes; node 33 has degree", degrees[33])
	// Output: 34 nodes; node 33 has degree 17
}

func ExampleDirectory_Export() {
	c, remove := config()
	defer remove()
	ctx := context.Background()
	d, err := ndls.Run(ctx, c, ndls.StagePartition)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := d.Export(ctx, ndls.ExportOptions{What: "edges", Format: "csv", Out: c.Run + ".edges.csv.gz", Memory: 256 << 20})
	fmt.Println(rows, err)
	// Output: 78 <nil>
}

func ExamplePlan() {
	forecast, err := ndls.Plan(context.Background(), ndls.PlanConfig{
		Counts:    ndls.Counts{Nodes: 1_000_000, Edges: 20_000_000, Features: 128},
		Resources: ndls.Resources{Memory: 4 << 30, Threads: 4},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range forecast.Stages {
		fmt.Println(f.Stage, f.PeakBytes <= 4<<30)
	}
	// Output:
	// partition true
	// lsi true
	// smooth true
}

func ExampleGC() {
	c, remove := config()
	defer remove()
	ctx := context.Background()
	if _, err := ndls.Run(ctx, c, ndls.StagePartition); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(c.Run, "notes.txt"), []byte("mine"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	left, err := ndls.GC(ctx, c.Run, true)
	for _, l := range left {
		fmt.Println(l.Name, l.Deleted, l.Foreign)
	}
	fmt.Println(err)
	// Output:
	// notes.txt false true
	// <nil>
}

func ExampleDirectory_Explain() {
	c, remove := config()
	defer remove()
	ctx := context.Background()
	d, err := ndls.Run(ctx, c, ndls.StagePartition, ndls.StageLSI)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := d.Explain(ctx, ndls.ExplainOptions{Node: "7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("K is that of the exact distances:", x.K.K == *x.Distances.K)
	fmt.Println("the distance is below ε there:", x.Distances.Hops[x.K.K] < x.Epsilon)
	// Output:
	// K is that of the exact distances: true
	// the distance is below ε there: true
}

func ExampleDiff() {
	c, remove := config()
	defer remove()
	ctx := context.Background()
	var runs []*ndls.Directory
	for name, epsilon := range []float64{0.05, 0.1} {
		next := c
		next.Run = fmt.Sprint(c.Run, name)
		next.Options = func(o *ndls.Options) { o.LSI.Mode, o.LSI.Epsilon = "influence-exact", epsilon }
		d, err := ndls.Run(ctx, next, ndls.StagePartition, ndls.StageLSI)
		if err != nil {
			fmt.Println(err)
			return
		}
		runs = append(runs, d)
	}
	x, err := ndls.Diff(ctx, runs[0], runs[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the same:", x.Same)
	for _, o := range x.Options {
		fmt.Println(o.Name, o.A, o.B)
	}
	// Output:
	// the same: false
	// epsilon 0.05 0.1
}

func ExampleList() {
	c, remove := config()
	defer remove()
	ctx := context.Background()
	if _, err := ndls.Run(ctx, c, ndls.StagePartition); err != nil {
		fmt.Println(err)
		return
	}
	err := ndls.List(ctx, []string{filepath.Dir(c.Run)}, func(s ndls.RunSummary) error {
		fmt.Println(filepath.Base(s.Run), s.State, s.Dataset)
		return nil
	})
	fmt.Println(err)
	// Output:
	// run COMPLETE karate:
	// <nil>
}
