package partition

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ndls/dataset"
	"ndls/internal/storage/storagetest"
)

// partOf is the graph of some nodes as a dataset of its own, with the splits of these nodes.
func (f *fake) partOf(splits map[uint32]dataset.Split) *fake {
	g := *f
	g.info.NumNodes = -1
	outside := func(id uint32) bool { return splits[id] == dataset.NoSplit }
	g.edges = slices.DeleteFunc(slices.Clone(f.edges), func(e dataset.Edge) bool { return outside(e.U) || outside(e.V) })
	g.labels = slices.DeleteFunc(slices.Clone(f.labels), func(r labelRow) bool { return outside(r.id) })
	g.features = slices.DeleteFunc(slices.Clone(f.features), func(r dataset.FeatureRow) bool { return outside(r.ID) })
	g.splits = nil
	for id, split := range splits {
		g.splits = append(g.splits, splitRow{id, split})
	}
	return &g
}

// TestOnly compares the graph of some splits with a dataset that has nothing else, and changes all
// that the dataset says of other nodes, which must change no byte.
func TestOnly(t *testing.T) {
	f := randomGraph(2000, 12_000, 20)
	published := *f
	for _, r := range f.labels {
		if split := dataset.Split(r.id % 7 % 5); split <= dataset.Test && split != dataset.NoSplit {
			published.splits = append(published.splits, splitRow{r.id, split})
		}
	}
	unknown := *f
	unknown.info.NumNodes = -1
	for _, c := range []struct {
		name, split, only string
		f                 *fake
	}{
		{"published, training nodes", "", OnlyTrain, &published},
		{"published, and validation nodes", "", OnlyTrainValid, &published},
		{"drawn, training nodes", "random:300,200", OnlyTrain, f},
		{"drawn, and validation nodes, number of nodes unknown", "random:300,200", OnlyTrainValid, &unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Features: true, Split: c.split, Only: c.only, Seed: 5, DropEdges: 0.2}
			last := map[string]dataset.Split{OnlyTrain: dataset.Train, OnlyTrainValid: dataset.Valid}[c.only]
			whole := naiveRun(c.f, Options{Split: c.split, Seed: 5})
			members := map[uint32]dataset.Split{}
			for node, id := range whole.ids {
				if split := dataset.Split(whole.splits[node]); split != dataset.NoSplit && split <= last {
					members[id] = split
				}
			}
			twin := o
			twin.Split = ""
			want := naiveRun(c.f.partOf(members), twin)
			option := func() Options {
				o := o
				o.Budget, o.Threads, o.Scratch = budget(t, 64<<20), 2, scratchFolder(t)
				return o
			}
			store := storagetest.NewMem()
			o = option()
			free := o.Budget.Free()
			got, err := Run(context.Background(), c.f, openCatalog(t, store), o)
			must(t, err)
			checkCommitted(t, openCatalog(t, store), got, want)
			if left := o.Budget.Free(); left != free {
				t.Errorf("%d bytes not given back", free-left)
			}

			other := *c.f
			other.edges, other.features = nil, nil
			for i, e := range c.f.edges {
				if members[e.U] == 0 || members[e.V] == 0 {
					e.U = uint32(i * 7 % 2000)
					if members[e.U] != 0 && members[e.V] != 0 {
						continue
					}
				}
				other.edges = append(other.edges, e)
			}
			for _, r := range c.f.features {
				if members[r.ID] == 0 {
					r = featureRow(r.ID+1, 20, false)
					r.ID--
				}
				other.features = append(other.features, r)
			}
			workers := &sharedWorkers{
				open: func() (dataset.Dataset, error) { return &other, nil }, store: storagetest.NewMem(), most: 4, draw: randomDraw(t), option: option,
			}
			must(t, workers.do(context.Background()))
			checkSame(t, workers.store, store)
		})
	}
}

// TestOnlyRefused has datasets without the splits that are asked for.
func TestOnlyRefused(t *testing.T) {
	f := randomGraph(50, 100, 0)
	for _, c := range []struct{ only, split, want string }{
		{OnlyTrain, "", "no splits"},
		{OnlyTrain, "random:100,1", "leaves no node"},
	} {
		o := Options{Budget: budget(t, 24<<20), Scratch: scratchFolder(t), Only: c.only, Split: c.split}
		free := o.Budget.Free()
		_, err := Run(context.Background(), f, openCatalog(t, storagetest.NewMem()), o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", fmt.Sprint(c), err, c.want)
		}
		if o.Budget.Free() != free {
			t.Errorf("%s: %d bytes not given back", fmt.Sprint(c), free-o.Budget.Free())
		}
	}
}

// TestRangesMeet gives each id to one of two ranges that meet.
func TestRangesMeet(t *testing.T) {
	a, b := idRange{lo: 3, hi: 9}, idRange{lo: 9, hi: 12}
	for id := range uint32(14) {
		if a.has(id) != (3 <= id && id < 9) || b.has(id) != (9 <= id && id < 12) {
			t.Errorf("id %d: %v in [3, 9), %v in [9, 12)", id, a.has(id), b.has(id))
		}
	}
}
