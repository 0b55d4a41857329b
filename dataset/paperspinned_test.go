package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"
)

// papersSum is the SHA-256 of a generated graph: its edges, then labels and splits of the labelled
// nodes, then all features, in order.
func papersSum(t *testing.T, uri string) string {
	d := open(t, uri, Options{}).(*papersDataset)
	h := sha256.New()
	var b []byte
	flush := func() {
		_, _ = h.Write(b)
		b = b[:0]
	}
	for i := range d.rows {
		e := d.edge(i)
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, e.U), e.V)
		if len(b) > 1<<16 {
			flush()
		}
	}
	for j := range d.g.labelled {
		node := d.g.labelledNode(j)
		b = binary.LittleEndian.AppendUint32(append(b, byte(d.g.class(node)), byte(d.g.split(j))), uint32(node))
	}
	flush()
	row := make([]float32, papersFeatures)
	for node := range d.nodes {
		d.feature(node, 0, row)
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		flush()
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestPapersSums pins graphs: results are quoted by their keys. Those of tails=X alone are the
// ones from before the other keys.
func TestPapersSums(t *testing.T) {
	for uri, want := range map[string]string{
		"papers100m:scale=1/4096":                  "210e5b25159c14134334e610b3bde03dfb6cacdea00569759b76970e20a28412",
		"papers100m:scale=1/1024,seed=3,mix=slow":  "920a881f5e47c312772ed3fb0c34105ab17932657d94deee1dacf69fe880a5ef",
		"papers100m:scale=1/4096,tails=0":          "ae7d8e5aaee01d6a80e7924ee072bc778183c658ae9529d7255f6e4cd81c8dc2",
		"papers100m:scale=1/4096,seed=7,tails=0":   "96f76efde3d2e831a667251ed64de74b72920421efb5f83c997ae16c56460292",
		"papers100m:scale=1/4096,tails=0.2":        "5c6846a4f026127cec77e81ace556de1119e1f3f6d5ef0b527d5760bac8cc13b",
		"papers100m:scale=1/1024,seed=3,tails=0.5": "f23825abac398ea8e1e82f7457d25c243192d919b55026b589ae05567a901c08",
	} {
		if got := papersSum(t, uri); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}
