package partition_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/storage/storagetest"
	"ndls/partition"
)

func ExampleRun() {
	ctx := context.Background()
	ds, err := dataset.Open(ctx, "karate:", dataset.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	cat, err := catalog.Open(ctx, storagetest.NewMem())
	if err != nil {
		log.Fatal(err)
	}
	budget, err := mem.NewBudget(256 << 20)
	if err != nil {
		log.Fatal(err)
	}
	s, err := partition.Run(ctx, ds, cat, partition.Options{Budget: budget, Scratch: os.TempDir()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Nodes, "nodes,", s.Edges, "edges,", s.Components, "component")
	for _, e := range cat.Entries(catalog.KindEdges) {
		fmt.Println(e.Path, e.Rows)
	}
	// Output:
	// 34 nodes, 78 edges, 1 component
	// graph/edges/part-00000.parquet 156
}
