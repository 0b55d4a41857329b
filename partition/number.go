package partition

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/inputid"
	"ndls/internal/keysort"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/shards"
)

// Number sorts the input ids of a dataset that is [dataset.Keyed], and commits them: an id's place in that order is its number. The step
// comes before all others. Datasets whose ids are numbers do not have it.
const Number = "number"

// numbering holds the step Number, and finds the numbers of ids and the ids behind numbers.
type numbering struct{ *job }

// number commits the numbered ids of a keyed dataset, unless that is done, and makes the dataset use them.
func (j numbering) number(ctx context.Context) error {
	ds, ok := j.ds.(dataset.Keyed)
	if !ok {
		return nil
	}
	if _, there := j.cat.Lookup(shards.IDsPath); !there {
		if err := j.commitIDs(ctx, ds); err != nil {
			return err
		}
	}
	return j.useIDs(ctx, ds)
}

// sortIDs reads the ids into a Sorter, which visits them in order. The caller closes it.
func (j numbering) sortIDs(ctx context.Context, ds dataset.Keyed) (*keysort.Sorter, error) {
	s, err := keysort.New(j.o.Budget, j.scratch, int64(sortShare*float64(j.o.Budget.Free())), j.o.Threads)
	if err != nil {
		return nil, err
	}
	meter := progress.Start(ctx, "reading node ids", 0, "ids")
	adders := s.Adders()
	err = ds.EachKey(ctx, len(adders), func(thread int) func(key []byte) error {
		a, n := adders[thread], int64(0)
		return func(key []byte) error {
			if n++; n%1024 == 0 {
				meter.Add(1024)
			}
			return a.Add(key)
		}
	})
	meter.Done()
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// commitIDs sorts the ids and commits them.
func (j numbering) commitIDs(ctx context.Context, ds dataset.Keyed) error {
	t, err := ds.KeyType(ctx)
	if err != nil {
		return err
	}
	s, err := j.sortIDs(ctx, ds)
	if err != nil {
		return err
	}
	defer s.Close()
	unique, about := ds.OwnNodes(), shards.IDs{Type: t, Longest: s.Longest(), Doubts: strings.Join(ds.Doubts(), "\n")}
	return j.cat.Write(ctx, catalog.Describe(catalog.KindIDs, shards.IDsPath), func(f *catalog.File) (err error) {
		f.Rows, err = shards.WriteIDs(f, about, func(put func(key []byte) error) error {
			n := int64(0)
			return s.Each(ctx, func(key []byte, times uint32) error {
				if times > 1 && unique {
					return ds.Twice(ctx, key)
				}
				if n++; n > dataset.MaxID+1 {
					return badData("%s has more than %d nodes, and node numbers have 32 bits", j.info.Name, int64(dataset.MaxID)+1)
				}
				return put(key)
			})
		})
		return err
	})
}

// IDCounts holds the counts of the ids of a dataset.
type IDCounts struct {
	// Nodes is the number of ids. Bytes is their size: 8 bytes per number, or the length of the text.
	Nodes, Bytes int64
	// Dense says that the ids are the whole numbers from 0 to Nodes-1, which need no table.
	Dense bool
}

// openIDs opens the table of ids.
func (j numbering) openIDs(ctx context.Context) (_ *shards.IDReader, closeFile func() error, err error) {
	e, ok := j.cat.Lookup(shards.IDsPath)
	if !ok {
		return nil, nil, fmt.Errorf("%s is not in the catalogue: run `ndls partition` again with --resume=false", shards.IDsPath)
	}
	r, err := j.cat.Open(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	t, err := shards.OpenIDs(r, e.Path)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return t, r.Close, nil
}

// useIDs gives the dataset the numbers of its ids. Ids that are the whole numbers from 0 to n-1 are their own numbers.
func (j numbering) useIDs(ctx context.Context, ds dataset.Keyed) (err error) {
	t, closeFile, err := j.openIDs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	n := t.Rows()
	dense, err := t.Dense()
	if err != nil {
		return err
	}
	find := func(key []byte) (uint32, bool) {
		v := inputid.Int(key)
		return uint32(v), v >= 0 && v < n
	}
	if !dense {
		j.named = t.IDs()
		if j.named.Doubts != "" {
			j.doubts, j.named.Doubts = strings.Split(j.named.Doubts, "\n"), ""
		}
		find = func(key []byte) (uint32, bool) { return j.table.Find(key) }
	}
	ds.Number(n, find)
	if !dense {
		ds.FetchBy(func(keys [][]byte) { j.table.Fetch(keys) })
	}
	j.info = ds.Info()
	return j.checkInfo()
}

// load loads the table that finds the numbers of ids for the streams of the dataset.
func (j numbering) load(ctx context.Context) (err error) {
	if j.named.Type == inputid.Number || j.table != nil {
		return nil
	}
	t, closeFile, err := j.openIDs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	table, err := inputid.NewTable(j.o.Budget, t.IDs().Type, t.Rows())
	if err != nil {
		return err
	}
	held := heldForTables(j.o.Budget.Free())
	if err := j.o.Budget.Reserve(held, "reading tables"); err != nil {
		table.Free()
		return err
	}
	j.held = held
	if err := t.Each(func(first int64, keys [][]byte) error {
		for i, key := range keys {
			if err := table.Add(key, uint32(first+int64(i))); err != nil {
				return badData("%s: %v", j.info.Name, err)
			}
		}
		return ctx.Err()
	}); err != nil {
		table.Free()
		j.free()
		return err
	}
	j.table = table
	return nil
}

// free frees the memory of load.
func (j numbering) free() {
	j.table.Free()
	j.o.Budget.Release(j.held)
	j.table, j.held = nil, 0
}

// nodeKeys returns the keys of the ids of some nodes in order of node, for the node table. It holds the keys of as many nodes as fit in
// memory, and reads the table of ids again for the next ones.
type nodeKeys struct {
	job     *job
	each    eachNodeKey
	first   int64              // first of all these nodes
	lengths *mem.Array[uint16] // length of the key of node first+i
	lo, hi  int64              // nodes whose keys are in memory
	offsets *mem.Array[uint32] // offset of the key of node lo+i in text
	text    *mem.Array[byte]
}

// eachNodeKey visits the keys of nodes, in order of the keys.
type eachNodeKey func(visit func(node int64, key []byte)) error

// newNodeKeys prepares for the nodes [first, end), which each visits.
func (j numbering) newNodeKeys(first, end int64, each eachNodeKey) (_ *nodeKeys, err error) {
	k := &nodeKeys{job: j.job, each: each, first: first, lo: first, hi: first}
	if k.lengths, err = mem.Alloc[uint16](j.o.Budget, end-first, "lengths of ids"); err != nil {
		return nil, err
	}
	if err := each(func(node int64, key []byte) { k.lengths.S[node-first] = uint16(len(key)) }); err != nil {
		k.free()
		return nil, err
	}
	return k, nil
}

func (k *nodeKeys) free() {
	if k != nil {
		k.lengths.Free()
		k.drop()
	}
}

func (k *nodeKeys) drop() {
	k.offsets.Free()
	k.text.Free()
}

// eachNodeKey visits the keys of all nodes.
func (j numbering) eachNodeKey(ctx context.Context) eachNodeKey {
	return func(visit func(node int64, key []byte)) error {
		return j.eachID(ctx, func(number uint32, key []byte) {
			// A part of the graph has only some of the ids.
			if rank, ok := j.ids.rank(number); ok {
				visit(int64(j.nodeOf.S[rank]), key)
			}
		})
	}
}

// eachID visits the table of ids.
func (j numbering) eachID(ctx context.Context, visit func(number uint32, key []byte)) (err error) {
	t, closeFile, err := j.openIDs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	return t.Each(func(first int64, keys [][]byte) error {
		for i, key := range keys {
			visit(uint32(first+int64(i)), key)
		}
		return ctx.Err()
	})
}

// fill returns the keys of the nodes from first on. They are valid until the next call.
func (k *nodeKeys) fill(first int64, keys [][]byte) error {
	for i := range keys {
		node := first + int64(i)
		if node >= k.hi {
			// The keys of this batch before node are copied, because their memory is reused.
			for b := range keys[:i] {
				keys[b] = append([]byte(nil), keys[b]...)
			}
			if err := k.load(node); err != nil {
				return err
			}
		}
		at := k.offsets.S[node-k.lo]
		keys[i] = k.text.S[at:][:k.lengths.S[node-k.first]]
	}
	return nil
}

// maxKeyText is the largest size of key text in memory, so that 32 bits hold the offset of a key.
const maxKeyText = 1 << 31

// load reads the keys of as many nodes from lo on as fit.
func (k *nodeKeys) load(lo int64) (err error) {
	k.drop()
	free := int64(sortShare * float64(k.job.o.Budget.Free()))
	hi, size := lo, int64(0)
	for ; hi < k.first+int64(len(k.lengths.S)); hi++ {
		length := int64(k.lengths.S[hi-k.first])
		if hi > lo && (size+length+4*(hi+1-lo) > free || size+length > maxKeyText) {
			break
		}
		size += length
	}
	if k.offsets, err = mem.Alloc[uint32](k.job.o.Budget, hi-lo, "ids of nodes"); err != nil {
		return err
	}
	if k.text, err = mem.Alloc[byte](k.job.o.Budget, size, "ids of nodes"); err != nil {
		return err
	}
	k.lo, k.hi = lo, hi
	at := uint32(0)
	for node := lo; node < hi; node++ {
		k.offsets.S[node-lo] = at
		at += uint32(k.lengths.S[node-k.first])
	}
	return k.each(func(node int64, key []byte) {
		if lo <= node && node < hi {
			copy(k.text.S[k.offsets.S[node-lo]:], key)
		}
	})
}

func (j *job) numbering() numbering { return numbering{j} }
