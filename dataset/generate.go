package dataset

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/internal/direct"
)

// Generate writes the graph of a synthetic: URI into dir, which is made if need
// be, and returns the edges: URI that reads the same streams back. The files are
// edges.npy (uint32, shape (2, edges)), features.npy (float32, shape (nodes,
// features)), labels.csv and splits.csv. Edges with weights are in edges.parquet, with
// the columns src, dst and weight. A papers100m: URI without weights becomes an ogb:
// one, whose files are laid out as ogbn-papers100M is published. Memory does not grow
// with the graph.
func Generate(ctx context.Context, uri, dir string) (string, error) {
	if rest, ok := strings.CutPrefix(uri, "papers100m:"); ok {
		g, err := parsePapers(rest)
		if err != nil {
			return "", err
		}
		d := g.dataset(Options{})
		if d.info.Weighted {
			return generateTables(ctx, d, dir)
		}
		return generatePapers(ctx, d, dir)
	}
	rest, ok := strings.CutPrefix(uri, "synthetic:")
	if !ok {
		return "", graph.BadURI("%q: only synthetic: and papers100m: datasets are generated", uri)
	}
	g, err := parseSynthetic(rest)
	if err != nil {
		return "", err
	}
	return generateTables(ctx, g.dataset(Options{}), dir)
}

// content writes a file of a dataset.
type content func(ctx context.Context, w *bufio.Writer, d Dataset) error

// generateTables writes a graph into the files that an edges: URI names.
func generateTables(ctx context.Context, d Dataset, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("generate: %w", err)
	}
	at := func(name string) string { return graph.EscapePath(filepath.Join(dir, name)) }
	info := d.Info()
	edges, query := "edges.npy", ""
	files := map[string]content{edges: edgesAs(npy.Uint32), "labels.csv": writeLabels, "splits.csv": writeSplits}
	if info.Weighted {
		delete(files, edges)
		edges, query = "edges.parquet", "weight=weight&"
		files[edges] = writeWeightedEdges
	}
	if info.NumFeatures > 0 {
		files["features.npy"] = writeFeatures
		query += "features=" + at("features.npy") + "&"
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(ctx, filepath.Join(dir, name), d, files[name]); err != nil {
			return "", fmt.Errorf("generate %s: %w", name, err)
		}
	}
	return fmt.Sprintf("edges:%s?%slabels=%s&splits=%s&nodes=%d", at(edges), query, at("labels.csv"), at("splits.csv"), info.NumNodes), nil
}

func writeFile(ctx context.Context, path string, d Dataset, write content) error {
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

// edgesAs writes all sources, then all targets, as numbers of a type: the edges are drawn twice rather than kept.
func edgesAs(typ npy.Type) content {
	return func(ctx context.Context, w *bufio.Writer, d Dataset) error {
		if err := npy.Write(w, typ, 2, d.Info().EdgeHint); err != nil {
			return err
		}
		for end := range 2 {
			if err := EachEdges(ctx, d, func(edges []Edge) error {
				for _, e := range edges {
					id := binary.LittleEndian.AppendUint64(w.AvailableBuffer(), uint64([]uint32{e.U, e.V}[end]))
					if _, err := w.Write(id[:typ.Size()]); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}
}

func writeFeatures(ctx context.Context, w *bufio.Writer, d Dataset) error {
	if err := npy.Write(w, npy.Float32, d.Info().NumNodes, int64(d.Info().NumFeatures)); err != nil {
		return err
	}
	r, err := d.Features(ctx, Whole)
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

func writeLabels(ctx context.Context, w *bufio.Writer, d Dataset) error {
	r, err := d.Labels(ctx)
	if err != nil {
		return err
	}
	return writeTable(w, "id,label\n", func() (uint32, string, error) {
		id, label, err := r.Next()
		return id, strconv.Itoa(int(label)), err
	})
}

func writeSplits(ctx context.Context, w *bufio.Writer, d Dataset) error {
	r, err := d.Splits(ctx, 0)
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
