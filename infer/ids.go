package infer

import (
	"context"
	"errors"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/failure"
	"ndls/internal/inputid"
	"ndls/internal/keysort"
	"ndls/internal/mem"
	"ndls/shards"
)

// idsPath is the file of the ids of the new nodes.
const idsPath = "ids.parquet"

// ids finds the nodes of a dataset: new ones, which its node table has, and old ones, which
// are nodes of the run. Keys are compared in a common form: those of the dataset where its ids
// and those of the run have one type, and else their text.
type ids struct {
	ds     dataset.Keyed
	t      inputid.Type // of the dataset
	common inputid.Type
	fresh  *inputid.Table // new nodes by key
	m      int
	old    *inputid.Table // other ids that edges name, numbered as they come
	others int
	buf    []byte
}

// openIDs numbers the new nodes, in ascending order of id, and commits their ids.
func openIDs(ctx context.Context, out *catalog.Catalog, ds dataset.Keyed, ofRun inputid.Type, b *mem.Budget,
	scratch string,
) (_ *ids, err error) {
	x := &ids{ds: ds}
	if x.t, err = ds.KeyType(ctx); err != nil {
		return nil, err
	}
	if ofRun == inputid.Number {
		ofRun = inputid.Int64
	}
	if x.common = x.t; x.t != ofRun {
		x.common = inputid.String
	}
	dir, err := extsort.NewScratch(scratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	s, err := keysort.New(b, dir, b.Free()/4, 1)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	n := int64(0)
	if err := ds.EachKey(ctx, 1, func(int) func(key []byte) error {
		return func(key []byte) error {
			n++
			return s.Adders()[0].Add(key)
		}
	}); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, failure.Of(failure.ErrData, "the node table of the dataset has no rows: there is no new node")
	}
	if n > dataset.MaxID/2 {
		return nil, failure.Of(failure.ErrData, "%d new nodes are more than %d: give them in several datasets", n, dataset.MaxID/2)
	}
	if x.fresh, err = inputid.NewTable(b, x.common, n); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			x.free()
		}
	}()
	return x, out.Write(ctx, catalog.Describe(catalog.KindIDs, idsPath), func(f *catalog.File) (err error) {
		f.Rows, err = shards.WriteIDs(f, shards.IDs{Type: x.t, Longest: s.Longest()}, func(put func(key []byte) error) error {
			return s.Each(ctx, func(key []byte, times uint32) error {
				if times > 1 {
					return ds.Twice(ctx, key)
				}
				if err := x.fresh.Add(x.key(key), uint32(x.m)); err != nil {
					return err
				}
				x.m++
				return put(key)
			})
		})
		return err
	})
}

// free returns the memory.
func (x *ids) free() {
	x.fresh.Free()
	x.old.Free()
}

// key is the common form of a key of the dataset.
func (x *ids) key(key []byte) []byte {
	if x.common == x.t {
		return key
	}
	x.buf = x.t.AppendText(x.buf[:0], key)
	return x.buf
}

// ofRun is the common form of a key of the run, whose ids have type t.
func (x *ids) ofRun(to []byte, t inputid.Type, key []byte) []byte {
	if x.common == t {
		return append(to[:0], key...)
	}
	return t.AppendText(to[:0], key)
}

// collect numbers the ids that edges name and that are no new nodes, as they come. Edges are
// read twice: to count them, and to find the ids. It returns the number of edges.
func (x *ids) collect(ctx context.Context, b *mem.Budget) (rows int64, err error) {
	x.ds.Number(int64(x.m), func([]byte) (uint32, bool) { return 0, true })
	if err := dataset.EachEdges(ctx, x.ds, func(batch []dataset.Edge) error { rows += int64(len(batch)); return nil }); err != nil {
		return 0, err
	}
	if x.old, err = inputid.NewTable(b, x.common, min(2*rows, dataset.MaxID)); err != nil {
		return 0, err
	}
	var full error
	x.ds.Number(int64(x.m), func(key []byte) (uint32, bool) {
		k := x.key(key)
		if _, ok := x.fresh.Find(k); ok {
			return 0, true
		}
		if _, ok := x.old.Find(k); !ok {
			if err := x.old.Add(k, uint32(x.others)); err != nil && full == nil {
				full = err
			}
			x.others++
		}
		return 0, true
	})
	if err := dataset.EachEdges(ctx, x.ds, func([]dataset.Edge) error { return full }); err != nil {
		return 0, err
	}
	if int64(x.m)+int64(x.others) > dataset.MaxID {
		return 0, failure.Of(failure.ErrData, "the edges name %d nodes, and there are numbers for %d: give the new nodes in several datasets", int64(x.m)+int64(x.others), int64(dataset.MaxID))
	}
	return rows, full
}

// resolve finds the nodes of the run that have the ids that were collected: nodes[o] is the
// node of the o-th of them plus 1, or 0 where there is none. A new node that is a node of the
// run is refused.
func (x *ids) resolve(ctx context.Context, run *run, nodes []uint32) error {
	return run.eachKey(ctx, func(node uint32, t inputid.Type, key []byte) error {
		x.buf = x.ofRun(x.buf, t, key)
		if o, ok := x.old.Find(x.buf); ok {
			nodes[o] = node + 1
		}
		if _, ok := x.fresh.Find(x.buf); ok {
			return failure.Of(failure.ErrData, "node %s of the dataset is a node of the run: leave out its row in the table of nodes; only new nodes have one", t.Quote(key))
		}
		return nil
	})
}

// number lets streams of the dataset give new nodes their number, and old ones that number
// plus the number of new nodes.
func (x *ids) number(nodes []uint32) {
	x.ds.Number(int64(x.m), func(key []byte) (uint32, bool) {
		k := x.key(key)
		if v, ok := x.fresh.Find(k); ok {
			return v, true
		}
		o, ok := x.old.Find(k)
		if !ok || nodes[o] == 0 {
			return 0, false
		}
		return uint32(x.m) + o, true
	})
}
