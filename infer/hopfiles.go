package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
)

// hopFiles are the hops that a run has kept of all its nodes. Rows are read one by one, and
// are not compared with checksums: ndls verify does that.
type hopFiles struct {
	parts []hopPart
	hops  int
	size  int // values of a row at a hop
}

// hopPart is a file with the hops of consecutive nodes.
type hopPart struct {
	first int64 // node
	file  storage.Reader
	rows  *shards.RowReader
}

// noHops says how to keep hops.
const noHops = "make a run with --keep-hops 0..H --targets all, H being the last hop that new nodes get"

// openHops opens the hops that a run has kept.
func openHops(ctx context.Context, cat *catalog.Catalog, s shards.Summary) (_ *hopFiles, err error) {
	h := &hopFiles{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	entries := cat.Entries(catalog.KindKeptHops)
	if len(entries) == 0 {
		return nil, failure.Of(failure.ErrOption, "the run has kept no hops: %s", noHops)
	}
	node := int64(0)
	for _, e := range entries {
		file, err := cat.Open(ctx, e)
		if err != nil {
			return nil, err
		}
		p := hopPart{first: node, file: file}
		h.parts = append(h.parts, p)
		if p.rows, err = shards.OpenRows(file, e.Path); err != nil {
			return nil, err
		}
		h.parts[len(h.parts)-1] = p
		schema := p.rows.Schema()
		h.hops, h.size = len(schema.Lists()), schema.Width
		switch {
		case schema.Column != shards.HopSchema(hopsTo(h.last()), h.size, false).Column:
			return nil, failure.Of(failure.ErrOption, "%s has the hops %v, not all from 0 on: %s", e.Path, schema.Lists(), noHops)
		case h.size != s.Features:
			return nil, failure.Of(failure.ErrOption, "%s has rows of %d values, and the graph %d features: the hops of label columns do not serve new nodes; %s", e.Path, h.size, s.Features, noHops)
		case !slices.Equal(schema.Lists(), h.parts[0].rows.Schema().Lists()):
			return nil, seal.Corrupt(e.Path, "it has other hops than %s", entries[0].Path)
		}
		node += p.rows.NumRows()
	}
	switch {
	case node != s.Nodes:
		return nil, failure.Of(failure.ErrOption, "the run has kept hops of %d nodes of %d: %s", node, s.Nodes, noHops)
	case h.hops < 2:
		return nil, failure.Of(failure.ErrOption, "the run has kept hop 0 alone: %s", noHops)
	}
	return h, nil
}

// hopsTo are the hops from 0 on to the last.
func hopsTo(last int) (hops []int) {
	for hop := range last + 1 {
		hops = append(hops, hop)
	}
	return hops
}

func (h *hopFiles) last() int { return h.hops - 1 }

func (h *hopFiles) width() int { return h.size }

// row implements kept.
func (h *hopFiles) row(node uint32, to []float32) error {
	at := sort.Search(len(h.parts), func(i int) bool { return h.parts[i].first > int64(node) }) - 1
	p := h.parts[at]
	row := int64(node) - p.first
	batch := sort.Search(p.rows.NumBatches(), func(i int) bool {
		first, _ := p.rows.BatchRows(i)
		return first > row
	}) - 1
	first, _ := p.rows.BatchRows(batch)
	values, err := p.rows.ReadValues(batch, row-first, 1, to)
	if err != nil {
		return fmt.Errorf("hops of a node: %w", err)
	}
	copy(to, values)
	return nil
}

func (h *hopFiles) close() (err error) {
	for _, p := range h.parts {
		err = errors.Join(err, p.file.Close())
	}
	return err
}
