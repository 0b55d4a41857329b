package partition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/storage"
)

// TestBytes compares what a partition commits with the bytes that earlier versions
// committed. Hop streams have a test of their own: their footer has a version.
func TestBytes(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		uri  string
		o    Options
		want string
	}{
		{"karate:", Options{Features: true}, "a79e2c4884a5b5a6bf162c7f10758a6af9543c26c5b0100d5cb29130f01b592f"},
		{"synthetic:nodes=2000,edges=30000,features=20", Options{Features: true}, "e4afb388dd0d16fc8cad40f4fbb58576af876954f55f6b25ad6f36d1b948fdac"},
		{"papers100m:scale=1/4096", Options{Features: true}, "99cb7037e4fa6819a55efba67829fc67fe9ff2c79f55eab3aa027a96b92628d0"},
		{"papers100m:scale=1/4096", Options{Split: "random:3,2", Seed: 7}, "06af3c46c0c1759282f293c1ac5001c77f6537f5921a591bb563a303d0ddcee0"}, // the summary warns
	} {
		for _, with := range []struct {
			free    int64
			threads int
		}{{24 << 20, 1}, {24 << 20, 2}, {24 << 20, 16}, {128 << 20, 2}, {128 << 20, 5}} {
			ds, err := dataset.Open(ctx, c.uri, dataset.Options{})
			must(t, err)
			o := c.o
			o.Budget, o.Scratch, o.Threads = budget(t, with.free), scratchFolder(t), with.threads
			cat := openCatalog(t, storage.NewMem())
			_, err = Run(ctx, ds, cat, o)
			must(t, err)
			must(t, ds.Close())
			if got := sumOf(cat); got != c.want {
				t.Errorf("%s, %d bytes free, %d threads: the artifacts have the checksum %s, want %s", c.uri, with.free, with.threads, got, c.want)
			}
		}
	}
}

// sumOf is a checksum over the checksums of all artifacts but hop streams.
func sumOf(cat *catalog.Catalog) string {
	h := sha256.New()
	for _, kind := range []string{catalog.KindEdges, catalog.KindNodes, catalog.KindFeatures, catalog.KindSummary} {
		for _, e := range cat.Entries(kind) {
			fmt.Fprintln(h, e.Path, e.Rows, e.Bytes, e.Checksum)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
