package ndls

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A plan takes features to be float16 only if they still are once rows are normalised.
func TestHalfOfNormalizedFeatures(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"edges.txt": "0 1\n1 2\n",
		"x.json":    `{"0": [0, 1, 2], "1": [1], "2": []}`, // rows of thirds, of one, of nothing
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	uri := "edges:" + dir + "/edges.txt?features=" + dir + "/x.json"
	for normalize, want := range map[string]bool{"auto": false, "l1": false, "none": true} {
		plan := DefaultOptions()
		plan.Partition.Normalize = normalize
		c, err := countDataset(context.Background(), uri, plan)
		if err != nil || c.Half != want || c.Features != 3 {
			t.Errorf("normalize %s: float16 %v, width %d, error %v", normalize, c.Half, c.Features, err)
		}
	}
}
