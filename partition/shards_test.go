package partition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/rng"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
)

// TestNoShards compares partitions without edge shards with those that have them: the edges of hop
// streams, and all other files, are the same.
func TestNoShards(t *testing.T) {
	directed := randomGraph(3000, 40_000, 7)
	directed.info.Directed = true
	for name, f := range map[string]*fake{
		"plain": randomGraph(3000, 40_000, 20), "directions": directed, "weights": weighted(3000, 40_000), "two intervals": wide(1),
	} {
		t.Run(name, func(t *testing.T) {
			partitioned := func(noShards bool) (*catalog.Catalog, shards.Summary) {
				t.Helper()
				cat := openCatalog(t, storagetest.NewMem())
				s, err := Run(t.Context(), f, cat, Options{
					Budget: budget(t, 96<<20), Scratch: scratchFolder(t), Threads: 2, IntervalBlocks: 1, Features: true, NoShards: noShards,
				})
				must(t, err)
				return cat, s
			}
			with, want := partitioned(false)
			without, got := partitioned(true)
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("summary %+v, with shards %+v", got, want)
			}
			kinds := []string{catalog.KindHops}
			if f.info.Directed {
				kinds = append(kinds, catalog.KindReversedHops)
			}
			for _, kind := range kinds {
				if !slices.Equal(readHopsOf(t, without, kind), readHopsOf(t, with, kind)) {
					t.Errorf("%s has other edges than with shards", kind)
				}
			}
			// The trailer of a hop stream has the checksum of its shard, or none.
			sums := func(cat *catalog.Catalog) map[string]string {
				m := map[string]string{}
				for _, e := range cat.Entries("") {
					if m[e.Path] = fmt.Sprint(e.Rows, " ", e.Bytes); !strings.HasSuffix(e.Path, ".hops") {
						m[e.Path] += " " + e.Checksum
					}
				}
				return m
			}
			expected := sums(with)
			maps.DeleteFunc(expected, func(path, _ string) bool {
				return strings.HasPrefix(path, "graph/edges/") || strings.HasPrefix(path, "graph/reversed/")
			})
			if got := sums(without); !maps.Equal(got, expected) {
				t.Errorf("there are\n%v, want\n%v", got, expected)
			}
			must(t, EnsureHops(t.Context(), without))
			if got := sums(without); !maps.Equal(got, expected) {
				t.Errorf("hop streams were made again:\n%v, want\n%v", got, expected)
			}
		})
	}
}

// wide is a graph of few edges that fills so many blocks, and a part of another one.
func wide(blocks int) *fake {
	n := blocks*BlockRows + 1000
	f := &fake{info: dataset.Info{NumNodes: int64(n)}}
	s := rng.New(6)
	for range 50_000 {
		f.edges = append(f.edges, dataset.Edge{U: uint32(s.Intn(n)), V: uint32(s.Intn(1 + s.Intn(n)))})
	}
	return f
}

// failing is a store that creates no more files once so many have a name with a prefix.
type failing struct {
	storage.Store
	prefix string
	left   int
}

var errNoMore = errors.New("no more files")

func (f *failing) Create(ctx context.Context, name string) (storage.Writer, error) {
	if strings.HasPrefix(name, f.prefix) {
		if f.left--; f.left < 0 {
			return nil, errNoMore
		}
	}
	return f.Store.Create(ctx, name)
}

// TestNoShardsContinued ends a partition without shards between two hop streams, and continues it.
func TestNoShardsContinued(t *testing.T) {
	f := wide(2)
	o := func() Options {
		return Options{Budget: budget(t, 96<<20), Scratch: scratchFolder(t), IntervalBlocks: 1, Features: true, NoShards: true}
	}
	whole := storagetest.NewMem()
	_, err := Run(t.Context(), f, openCatalog(t, whole), o())
	must(t, err)
	store := storagetest.NewMem()
	if _, err := Run(t.Context(), f, openCatalog(t, &failing{store, "graph/hops/", 2}), o()); !errors.Is(err, errNoMore) {
		t.Fatalf("the third hop stream: %v", err)
	}
	cat := openCatalog(t, store)
	before := cat.Entries(catalog.KindHops)
	if len(before) == 0 || len(before) == 3 {
		t.Fatalf("%d hop streams are committed", len(before))
	}
	_, err = Run(t.Context(), f, openCatalog(t, store), o())
	must(t, err)
	checkSame(t, store, whole)
}
