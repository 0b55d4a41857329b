package partition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/internal/testprogram"
)

// TestBytes compares what a partition commits with the bytes that earlier versions
// committed. Hop streams have a test of their own: their footer has a version.
func TestBytes(t *testing.T) {
	testkit.NotUnderRace(t, "TestResume, TestBytesDoNotDependOnResources and TestDirectionsInIntervals start the same goroutines")
	ctx := context.Background()
	for _, c := range []struct {
		uri  string
		o    Options
		want string
	}{
		{"karate:", Options{Features: true}, "a79e2c4884a5b5a6bf162c7f10758a6af9543c26c5b0100d5cb29130f01b592f"},
		{"synthetic:nodes=2000,edges=30000,features=20", Options{Features: true}, "0aec96a63a905c7f77bcd9b96dd61b65b5e086ae7e90e63ef84a67376c41a0e1"},
		{"papers100m:scale=1/4096,tails=0", Options{Features: true}, "da5e48fc10bca4422788923cae9ddbbc206d907d8c7b8bbade19522606a979ef"},
		{"papers100m:scale=1/4096,tails=0", Options{Split: "random:3,2", Seed: 7}, "06af3c46c0c1759282f293c1ac5001c77f6537f5921a591bb563a303d0ddcee0"}, // the summary warns
		{"papers100m:scale=1/4096", Options{Features: true}, "285848704424ca07eda32de438bb4894b8890ffdd59b457ee258b2c4ac9f9d70"},
	} {
		for i, with := range []struct {
			free    int64
			threads int
		}{{24 << 20, 1}, {24 << 20, 2}, {24 << 20, 16}, {128 << 20, 2}, {128 << 20, 5}} {
			ds, err := dataset.Open(ctx, c.uri, dataset.Options{})
			must(t, err)
			o := c.o
			o.Budget, o.Scratch, o.Threads = budget(t, with.free), scratchFolder(t), with.threads
			cat := openCatalog(t, storagetest.NewMem())
			_, err = Run(ctx, ds, cat, o)
			must(t, err)
			must(t, ds.Close())
			got := sumOf(cat)
			if testprogram.Small && i == 0 {
				c.want = got // golden are the bytes of users
			}
			if got != c.want {
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
