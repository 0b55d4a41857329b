package dataset

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/internal/direct"
)

// Generate writes the graph of a synthetic: URI into dir, which is made if need
// be, and returns the edges: URI that reads the same streams back. The files are
// edges.npy (uint32, shape (2, edges)), features.npy (float32, shape (nodes,
// features)), labels.csv and splits.csv. A papers100m: URI becomes an ogb: one,
// whose files are laid out as ogbn-papers100M is published. Memory does not grow
// with the graph.
func Generate(ctx context.Context, uri, dir string) (string, error) {
	if rest, ok := strings.CutPrefix(uri, "papers100m:"); ok {
		return generatePapers(ctx, rest, dir)
	}
	rest, ok := strings.CutPrefix(uri, "synthetic:")
	if !ok {
		return "", graph.BadURI("%q: only synthetic: and papers100m: datasets are generated", uri)
	}
	g, err := parseSynthetic(rest)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("generate: %w", err)
	}
	d := g.dataset(Options{})
	for _, f := range []struct {
		name  string
		write func(ctx context.Context, w *bufio.Writer, d *counted) error
	}{{"edges.npy", writeEdges}, {"features.npy", writeFeatures}, {"labels.csv", writeLabels}, {"splits.csv", writeSplits}} {
		if f.name == "features.npy" && d.info.NumFeatures == 0 {
			continue
		}
		if err := writeFile(ctx, filepath.Join(dir, f.name), d, f.write); err != nil {
			return "", fmt.Errorf("generate %s: %w", f.name, err)
		}
	}
	at := func(name string) string { return graph.EscapePath(filepath.Join(dir, name)) }
	query := []string{"labels=" + at("labels.csv"), "splits=" + at("splits.csv"), fmt.Sprintf("nodes=%d", g.nodes)}
	if d.info.NumFeatures > 0 {
		query = append([]string{"features=" + at("features.npy")}, query...)
	}
	return "edges:" + at("edges.npy") + "?" + strings.Join(query, "&"), nil
}

func writeFile(ctx context.Context, path string, d *counted, write func(context.Context, *bufio.Writer, *counted) error) error {
	f, err := direct.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	w := bufio.NewWriterSize(f, 64<<10)
	if err := write(ctx, w, d); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Finish()
}

// writeEdges writes all sources, then all targets: the edges are drawn twice
// rather than kept.
func writeEdges(ctx context.Context, w *bufio.Writer, d *counted) error {
	if err := npy.Write(w, npy.Uint32, 2, d.rows); err != nil {
		return err
	}
	batch := make([]Edge, 4096)
	for end := range 2 {
		r, err := d.Edges(ctx)
		if err != nil {
			return err
		}
		for {
			n, err := r.Read(batch)
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			for _, e := range batch[:n] {
				id := e.U
				if end == 1 {
					id = e.V
				}
				if _, err := w.Write(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), id)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func writeFeatures(ctx context.Context, w *bufio.Writer, d *counted) error {
	if err := npy.Write(w, npy.Float32, d.nodes, int64(d.info.NumFeatures)); err != nil {
		return err
	}
	r, err := d.Features(ctx)
	if err != nil {
		return err
	}
	for {
		row, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, v := range row.Dense {
			if _, err := w.Write(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), math.Float32bits(v))); err != nil {
				return err
			}
		}
	}
}

func writeLabels(ctx context.Context, w *bufio.Writer, d *counted) error {
	r, err := d.Labels(ctx)
	if err != nil {
		return err
	}
	return writeTable(w, "id,label\n", func() (uint32, string, error) {
		id, label, err := r.Next()
		return id, strconv.Itoa(int(label)), err
	})
}

func writeSplits(ctx context.Context, w *bufio.Writer, d *counted) error {
	r, err := d.Splits(ctx)
	if err != nil {
		return err
	}
	return writeTable(w, "id,split\n", func() (uint32, string, error) {
		id, split, err := r.Next()
		return id, split.String(), err
	})
}

func writeTable(w *bufio.Writer, header string, next func() (uint32, string, error)) error {
	_, err := w.WriteString(header)
	for err == nil {
		id, value, end := next()
		if end == io.EOF {
			return nil
		}
		if end != nil {
			return end
		}
		line := strconv.AppendUint(w.AvailableBuffer(), uint64(id), 10)
		line = append(append(append(line, ','), value...), '\n')
		_, err = w.Write(line)
	}
	return err
}
