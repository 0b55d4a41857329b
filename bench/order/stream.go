package main

import (
	"context"
	"io"
	"slices"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/storage/storagetest"
	"ndls/shards"
	"ndls/spmv"
)

// packedOrder is the graph in one order.
type packedOrder struct {
	name    string
	found   float64 // CPU seconds
	rows    int64   // pairs of strip and source
	stream  *shards.HopStream
	pass    *spmv.Pass
	nodes   *mem.Array[uint32] // in order
	degrees *mem.Array[uint32] // of them
	times   map[int][]clock    // of the passes, by threads
}

func (p *packedOrder) free() {
	p.stream.Close()
	p.nodes.Free()
	p.degrees.Free()
}

// packer makes hop streams.
type packer struct {
	b     *mem.Budget
	g     *graph
	place *mem.Array[uint32] // of each node in the order
	out   *mem.Array[byte]
}

// packAll finds the orders and packs the edges in each of them.
func packAll(ctx context.Context, b *mem.Budget, g *graph, all []order) ([]*packedOrder, error) {
	p := &packer{b: b, g: g}
	var err error
	if p.place, err = mem.Alloc[uint32](b, g.n, "places"); err != nil {
		return nil, err
	}
	defer p.place.Free()
	if p.out, err = mem.Alloc[byte](b, streamBytes(g), "hop stream"); err != nil {
		return nil, err
	}
	defer p.out.Free()
	kernel, err := spmv.Select("auto")
	if err != nil {
		return nil, err
	}
	var done []*packedOrder
	for _, o := range all {
		q := &packedOrder{name: o.name, times: map[int][]clock{}}
		if q.nodes, err = mem.Alloc[uint32](b, g.n, "an order"); err != nil {
			return nil, err
		}
		start := now()
		if err := o.find(b, g, q.nodes.S); err != nil {
			return nil, err
		}
		q.found = now().sub(start).cpu
		if err := p.pack(ctx, q); err != nil {
			return nil, err
		}
		q.pass = &spmv.Pass{Source: q.stream, Degree: q.degrees.S, Kernel: kernel}
		done = append(done, q)
	}
	return done, nil
}

// streamBytes bounds the size of a hop stream: in narrow words a strip has a skip for at
// most every narrow escape of its sources, and a frame at most a page of padding, header and
// footer. A frame in wide words is smaller than in narrow ones.
func streamBytes(g *graph) int64 {
	strips := int64(packed.Strips(g.n))
	words := g.numEdges() + strips*(g.n/int64(packed.Escape(packed.Narrow))+1)
	frames := words/(packed.FrameWords/2) + strips
	return packed.Narrow*words + frames*(2*packed.Align) + 2*packed.Align
}

// pack makes the resident hop stream of an order.
func (p *packer) pack(ctx context.Context, q *packedOrder) error {
	n := p.g.n
	var err error
	if q.degrees, err = mem.Alloc[uint32](p.b, n, "degrees"); err != nil {
		return err
	}
	for i, v := range q.nodes.S {
		p.place.S[v] = uint32(i)
		q.degrees.S[i] = uint32(p.g.degree(v))
	}
	out := &buffer{room: p.out.S}
	w, err := shards.NewHopWriter(out, shards.EdgeMeta{Hi: n, NumNodes: n, BlockRows: packed.BlockRows})
	if err != nil {
		return err
	}
	for lo := int64(0); lo < n; lo += packed.BlockRows {
		if err := p.block(w, q, uint32(lo), uint32(min(lo+packed.BlockRows, n))); err != nil {
			return err
		}
	}
	if _, err := w.Close(""); err != nil {
		return err
	}
	f, err := shards.OpenHops(storagetest.NewBytesReader(out.room[:out.n]), q.name)
	if err != nil {
		return err
	}
	if q.stream, err = shards.NewHopStream(f); err != nil {
		return err
	}
	return q.stream.Load(ctx, p.b, 1)
}

// block writes the edges into places [lo, hi) by (source, destination).
func (p *packer) block(w *shards.HopWriter, q *packedOrder, lo, hi uint32) error {
	src, dst := make([]uint32, p.g.maxDegree()), make([]uint32, 0, p.g.maxDegree())
	for i, v := range q.nodes.S {
		dst = dst[:0]
		for _, u := range p.g.of(v) {
			if at := p.place.S[u]; at >= lo && at < hi {
				dst = append(dst, at)
			}
		}
		slices.Sort(dst)
		strip := ^uint32(0)
		for j, d := range dst {
			src[j] = uint32(i)
			if s := d >> packed.StripShift; s != strip {
				strip = s
				q.rows++
			}
		}
		if err := w.Write(src[:len(dst)], dst, nil); err != nil {
			return err
		}
	}
	return nil
}

// buffer writes to memory.
type buffer struct {
	room []byte
	n    int
}

func (b *buffer) Write(p []byte) (int, error) {
	n := copy(b.room[b.n:], p)
	b.n += n
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
