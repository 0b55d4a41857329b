package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"ndls/dataset"
	"ndls/internal/mem"
)

// options say what is measured.
type options struct {
	dataset string
	orders  []order
	columns int
	rounds  int
	threads []int
	memory  int64
}

func main() {
	set := flag.String("dataset", "papers100m:scale=1/64,tails=0", "the data set")
	names := flag.String("orders", "", `orders beside "degree", separated by commas (default all)`)
	columns := flag.Int("columns", 16, "float32 columns of a pass")
	rounds := flag.Int("rounds", 5, "how often every order has its turn")
	memory := flag.Float64("memory", 5, "budget in GiB")
	flag.Parse()
	chosen, err := choose(*names)
	if err == nil {
		err = run(context.Background(), options{
			dataset: *set, orders: chosen, columns: *columns, rounds: *rounds,
			threads: []int{1, 2}, memory: int64(*memory * (1 << 30)),
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "order:", err)
		os.Exit(1)
	}
}

// choose gives the product's order, with which the others are compared, and
// those of the names.
func choose(names string) ([]order, error) {
	if names == "" {
		return orders, nil
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(orders, func(o order) bool { return o.name == name }) {
			return nil, fmt.Errorf("%q is no order: see the package comment", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(orders), func(o order) bool {
		return o.name != reference && !slices.Contains(wanted, o.name)
	}), nil
}

func run(ctx context.Context, o options) error {
	budget, err := mem.NewBudget(o.memory)
	if err != nil {
		return err
	}
	d, err := dataset.Open(ctx, o.dataset, dataset.Options{NoFeatures: true})
	if err != nil {
		return err
	}
	defer d.Close()
	g, err := load(ctx, budget, d)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d nodes, %d directed edges, %d columns, %d rounds\n\n", o.dataset, g.n, g.numEdges(), o.columns, o.rounds)
	packed, err := packAll(ctx, budget, g, o.orders)
	if err != nil {
		return err
	}
	g.free() // the passes need the room
	for _, threads := range o.threads {
		if err := measure(ctx, budget, packed, o.columns, threads, o.rounds); err != nil {
			return err
		}
	}
	report(os.Stdout, packed, o.threads)
	return nil
}
