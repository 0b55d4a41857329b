package dataset

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/klauspost/compress/gzip"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
)

// generatePapers writes a graph without weights into dir as ogbn-papers100M is published, and
// returns the ogb: URI. Labels are float32 of shape (nodes, 1) with NaN for none. Archives are not
// compressed, and zip64 where that is needed.
func generatePapers(ctx context.Context, d *papersDataset, dir string) (string, error) {
	split := filepath.Join("split", "time")
	for _, folder := range []string{"raw", split} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o777); err != nil {
			return "", fmt.Errorf("generate: %w", err)
		}
	}
	for _, f := range []struct {
		name  string
		write func(context.Context, *bufio.Writer, *papersDataset) error
	}{
		{filepath.Join("raw", "data.npz"), writePapers},
		{filepath.Join("raw", "node-label.npz"), writePapersLabels},
		{filepath.Join(split, "train.csv.gz"), papersSplit(Train)},
		{filepath.Join(split, "valid.csv.gz"), papersSplit(Valid)},
		{filepath.Join(split, "test.csv.gz"), papersSplit(Test)},
	} {
		write := func(ctx context.Context, w *bufio.Writer, _ Dataset) error { return f.write(ctx, w, d) }
		if err := writeFile(ctx, filepath.Join(dir, f.name), d, write); err != nil {
			return "", fmt.Errorf("generate %s: %w", f.name, err)
		}
	}
	return "ogb:" + graph.EscapePath(dir), nil
}

// npzMember is an array of an archive, written front to back.
type npzMember struct {
	name  string
	write func(w *bufio.Writer) error
}

func writeNPZ(w io.Writer, members ...npzMember) error {
	z := zip.NewWriter(w)
	for _, m := range members {
		f, err := z.CreateHeader(&zip.FileHeader{Name: m.name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		b := bufio.NewWriterSize(f, 64<<10)
		if err := m.write(b); err != nil {
			return err
		}
		if err := b.Flush(); err != nil {
			return err
		}
	}
	return z.Close()
}

func writePapers(ctx context.Context, w *bufio.Writer, d *papersDataset) error {
	count := func(n int64) func(*bufio.Writer) error {
		return func(w *bufio.Writer) error {
			if err := npy.Write(w, npy.Int64, 1); err != nil {
				return err
			}
			return binary.Write(w, binary.LittleEndian, n)
		}
	}
	return writeNPZ(
		w,
		npzMember{"edge_index", func(w *bufio.Writer) error { return edgesAs(npy.Int64)(ctx, w, d) }},
		npzMember{"node_feat", func(w *bufio.Writer) error { return writeFeatures(ctx, w, d) }},
		npzMember{"num_nodes_list", count(d.g.nodes)},
		npzMember{"num_edges_list", count(d.g.edges)},
	)
}

func writePapersLabels(ctx context.Context, w *bufio.Writer, d *papersDataset) error {
	return writeNPZ(w, npzMember{"node_label", func(w *bufio.Writer) error {
		if err := npy.Write(w, npy.Float32, d.nodes, 1); err != nil {
			return err
		}
		next := int64(0)
		for node := range d.nodes {
			if node%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			label := math.NaN()
			if next < d.g.labelled && node == d.g.labelledNode(next) {
				label = float64(d.g.class(node))
				next++
			}
			if _, err := w.Write(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), math.Float32bits(float32(label)))); err != nil {
				return err
			}
		}
		return nil
	}})
}

// papersSplit writes the node ids of a split, one a line.
func papersSplit(want Split) func(context.Context, *bufio.Writer, *papersDataset) error {
	return func(ctx context.Context, w *bufio.Writer, d *papersDataset) error {
		z := gzip.NewWriter(w)
		r, err := d.Splits(ctx, 0)
		if err != nil {
			return err
		}
		for {
			node, split, err := r.Next()
			if err == io.EOF {
				return z.Close()
			}
			if err != nil {
				return err
			}
			if split != want {
				continue
			}
			if _, err := z.Write(append(strconv.AppendUint(nil, uint64(node), 10), '\n')); err != nil {
				return err
			}
		}
	}
}
