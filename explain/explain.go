package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/inputid"
	"ndls/internal/meant"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/shards"
)

// Options say what is explained, and how the run was made.
type Options struct {
	// ID is the input id of the node, as text.
	ID string
	// R, Epsilon, Kmax and Mode are those with which the run has found K; Global says that the whole graph has one
	// stationary state.
	R, Epsilon float64
	Kmax       int
	Mode       string
	Global     bool
	// Hops is the hop up to which distances are computed, at most Kmax; 0 goes as far as K of the
	// run and the distance falling below Epsilon.
	Hops int
	// Neighbours is the number of neighbours that are listed one by one.
	Neighbours int
	Budget     *mem.Budget
	Threads    int
}

// Node holds what is known of a node.
type Node struct {
	// ID is the input id as text, Node the number of the node inside the run.
	ID   string `json:"id"`
	Node int64  `json:"node"`
	// Degree is the number of neighbours, OutDegree how many of its edges begin at the node, in a
	// graph with directions, Strength the sum of the weights of its edges, in a graph with weights.
	Degree    uint32  `json:"degree"`
	OutDegree *uint32 `json:"out_degree,omitempty"`
	Strength  float64 `json:"strength,omitempty"`
	// Component is the number of the connected component, ComponentNodes how many nodes it has.
	Component      uint32 `json:"component"`
	ComponentNodes int64  `json:"component_nodes"`
	// Label is nil for a node without one, Split "" for a node of no split.
	Label *Class `json:"label,omitempty"`
	Split string `json:"split,omitempty"`
	// K is nil where the run has no K table.
	K *K `json:"k,omitempty"`
	// Distances is nil where edges have directions.
	Distances  *Distances `json:"distances,omitempty"`
	Neighbours Neighbours `json:"neighbours"`
	// Before and After hold the run's predictions for the node before and after label smoothing;
	// nil if there are none.
	Before *Prediction `json:"before_label_smoothing,omitempty"`
	After  *Prediction `json:"after_label_smoothing,omitempty"`
}

// Class is a class by number and name.
type Class struct {
	Number int32  `json:"number"`
	Name   string `json:"name"`
}

// K is the local smoothing iteration that the run has found.
type K struct {
	K int `json:"k"`
	// Capped says that the distance did not fall below epsilon up to kmax.
	Capped bool `json:"capped"`
}

// Distances are the distances of the node from its stationary state.
type Distances struct {
	// Of is "influence" or "features", what the distances are of.
	Of string `json:"of"`
	// Hops has the distance of each hop, from 0 on.
	Hops []float64 `json:"hops"`
	// K is the first hop at which the distance is below epsilon; nil if it is at none of them.
	K *int `json:"k"`
}

// Below is the first hop at which the distance is below epsilon.
func (d *Distances) Below(epsilon float64) (hop int, ok bool) {
	hop = slices.IndexFunc(d.Hops, func(x float64) bool { return x < epsilon })
	return hop, hop >= 0
}

// Neighbours are those from which a node takes rows, and in a graph with directions also those to which its edges
// lead.
type Neighbours struct {
	Count int `json:"count"`
	// K lists [k, neighbours] in ascending order of k.
	K [][2]int `json:"k,omitempty"`
	// First are the neighbours with the largest degrees.
	First []Neighbour `json:"first"`
}

// Neighbour is one of them.
type Neighbour struct {
	ID     string   `json:"id"`
	Degree uint32   `json:"degree"`
	Weight *float32 `json:"weight,omitempty"`
	K      *int     `json:"k,omitempty"`
	Label  *Class   `json:"label,omitempty"`
}

// Prediction holds the prediction of a node.
type Prediction struct {
	// Values holds the probability of each label, or each number, of a run with such a task, whose other fields are then empty.
	Values []float32 `json:"values,omitempty"`
	// Class is the most probable class, Probability its probability. Right reports whether it is the label; it
	// is nil for a node without one.
	Class       Class   `json:"class"`
	Probability float32 `json:"probability"`
	Right       *bool   `json:"right,omitempty"`
	// Probabilities lists the probabilities of all classes, if the run keeps them.
	Probabilities []float32 `json:"probabilities,omitempty"`
}

// Of explains a node of the run that cat lists. An id that is none of a node gives
// [failure.ErrOption].
func Of(ctx context.Context, cat *catalog.Catalog, o Options) (*Node, error) {
	sum, err := shards.ReadSummary(ctx, cat)
	if err != nil {
		return nil, err
	}
	e := &explanation{Options: o, cat: cat, sum: sum}
	defer e.free()
	for _, step := range []func(context.Context) error{e.find, e.readEdges, e.neighbours, e.distances, e.predictions} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &e.node, nil
}

// explanation is one call of Of.
type explanation struct {
	Options
	cat  *catalog.Catalog
	sum  shards.Summary
	node Node
	// number is the value of the node table in its column of ids.
	number int64
	// beside are the neighbours in order of node, weight the weights of the edges to them.
	beside *mem.Array[uint32]
	weight *mem.Array[float32]
	// release gives back what reading edges takes of the budget.
	release func()
}

func (e *explanation) free() {
	e.beside.Free()
	e.weight.Free()
	if e.release != nil {
		e.release()
	}
}

// readers are those that read tables.
func (e *explanation) readers() shards.Readers {
	return shards.Readers{Threads: e.Threads, Budget: e.Budget}
}

// errFound ends a search.
var errFound = errors.New("found")

// splitNames spells the splits of the node table.
var splitNames = []string{"", "train", "valid", "test"}

// find looks the node up in the node table.
func (e *explanation) find(ctx context.Context) (err error) {
	if e.number, err = e.numberOf(ctx); err != nil {
		return err
	}
	found := false
	least, most := int64(math.MaxInt64), int64(0)
	if err := shards.VisitNodes(ctx, e.cat, shards.AllNodeColumns, e.readers(), func(first int64, b shards.NodeBatch) error {
		i := slices.Index(b.ID, e.number)
		if i < 0 {
			if len(b.ID) > 0 {
				least, most = min(least, slices.Min(b.ID)), max(most, slices.Max(b.ID))
			}
			return nil
		}
		found = true
		e.node = Node{
			ID: e.ID, Node: first + int64(i), Degree: b.Degree[i], Component: b.Component[i],
			Label: e.class(b.Label[i]), Split: splitNames[b.Split[i]],
		}
		if len(b.Strength) > 0 {
			e.node.Strength = b.Strength[i]
		}
		if len(b.OutDegree) > 0 {
			out := b.OutDegree[i]
			e.node.OutDegree = &out
		}
		return nil
	}); err != nil {
		return err
	}
	if !found {
		return e.unknown(fmt.Sprintf("; the ids are numbers from %d to %d", least, most))
	}
	return shards.VisitNodes(ctx, e.cat, shards.NodeComponent, e.readers(), func(_ int64, b shards.NodeBatch) error {
		for _, c := range b.Component {
			if c == e.node.Component {
				e.node.ComponentNodes++
			}
		}
		return nil
	})
}

// unknown is the error of an id that no node has; near says which one may be meant.
func (e *explanation) unknown(near string) error {
	return failure.Of(failure.ErrOption, "--node %s: no node of the run has this id%s", e.ID, near)
}

// class is a label with its name, nil for none, and where nodes have labels or numbers in place of a class.
func (e *explanation) class(label int32) *Class {
	if label < 0 || int(label) >= len(e.sum.Classes) || e.hasAnswers() {
		return nil
	}
	return &Class{label, e.sum.Classes[label]}
}

// numberOf returns the value of the node table for the id.
func (e *explanation) numberOf(ctx context.Context) (int64, error) {
	t, err := inputid.TypeOf(e.sum.IDs)
	if err != nil {
		return 0, err
	}
	if t == inputid.Number {
		number, err := strconv.ParseInt(e.ID, 10, 64)
		if err != nil {
			return 0, failure.Of(failure.ErrOption, "--node %q is no id of this run, whose ids are numbers", e.ID)
		}
		return number, nil
	}
	key, ok := t.ParseKey(nil, e.ID)
	if !ok {
		return 0, failure.Of(failure.ErrOption, "--node %q is no id of this run, whose ids have the type %s", e.ID, t)
	}
	table, closeTable, err := e.ids(ctx)
	if err != nil {
		return 0, err
	}
	defer closeTable()
	number, near, beyond := int64(-1), "", false
	search := meant.NewSearch(e.ID)
	err = table.Each(func(first int64, keys [][]byte) error {
		at, found := slices.BinarySearchFunc(keys, key, bytes.Compare)
		if found {
			number = first + int64(at)
			return errFound
		}
		// Ids ascend: the first that is larger follows it in their order, or the last one comes before it.
		if !beyond && len(keys) > 0 {
			beyond = at < len(keys)
			near = t.Quote(keys[min(at, len(keys)-1)])
		}
		switch {
		case t == inputid.String: // a letter at the beginning moves an id far away
			for _, k := range keys {
				search.Add(string(k))
			}
		case beyond:
			return errFound
		}
		return ctx.Err()
	})
	switch word := search.Word(); {
	case number >= 0:
		return number, nil
	case err != nil && !errors.Is(err, errFound):
		return 0, err
	case word != "":
		return 0, e.unknown("; did you mean " + t.Quote([]byte(word)) + "?")
	case near != "":
		near = "; one that comes close to it in their order is " + near
	}
	return 0, e.unknown(near)
}

// ids opens the table of input ids.
func (e *explanation) ids(ctx context.Context) (*shards.IDReader, func(), error) {
	entry, ok := e.cat.Lookup(shards.IDsPath)
	if !ok {
		return nil, nil, seal.Corrupt(shards.IDsPath, "the catalogue does not name it")
	}
	r, err := e.cat.Open(ctx, entry)
	if err != nil {
		return nil, nil, err
	}
	table, err := shards.OpenIDs(r, entry.Path)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return table, func() { _ = r.Close() }, nil
}

// texts are the ids with these numbers, as text.
func (e *explanation) texts(ctx context.Context, numbers []int64) ([]string, error) {
	texts := make([]string, len(numbers))
	if e.sum.IDs == "" {
		for i, n := range numbers {
			texts[i] = strconv.FormatInt(n, 10)
		}
		return texts, nil
	}
	table, closeTable, err := e.ids(ctx)
	if err != nil {
		return nil, err
	}
	defer closeTable()
	order := make([]int, len(numbers)) // the reader wants them in ascending order
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(numbers[a] - numbers[b]) })
	ascending := make([]int64, len(numbers))
	for i, at := range order {
		ascending[i] = numbers[at]
	}
	keys, err := table.Keys(ascending)
	if err != nil {
		return nil, err
	}
	for i, at := range order {
		texts[at] = string(table.IDs().Type.AppendText(nil, keys[i]))
	}
	return texts, nil
}

// neighbours describes the nodes at the other ends of the node's edges.
func (e *explanation) neighbours(ctx context.Context) error {
	beside := e.beside.S
	e.node.Neighbours = Neighbours{Count: len(beside), First: []Neighbour{}}
	var numbers []int64
	at, first := 0, min(len(beside), e.Neighbours)
	if err := shards.VisitNodes(ctx, e.cat, shards.NodeID|shards.NodeDegree|shards.NodeLabel, e.readers(),
		func(lo int64, b shards.NodeBatch) error {
			// Nodes are in descending order of degree.
			for ; at < first && int64(beside[at]) < lo+int64(len(b.ID)); at++ {
				i := int64(beside[at]) - lo
				x := Neighbour{Degree: b.Degree[i], Label: e.class(b.Label[i])}
				if e.sum.Weighted {
					weight := e.weight.S[at]
					x.Weight = &weight
				}
				e.node.Neighbours.First = append(e.node.Neighbours.First, x)
				numbers = append(numbers, b.ID[i])
			}
			if at == first {
				return errFound
			}
			return nil
		}); err != nil && !errors.Is(err, errFound) {
		return err
	}
	texts, err := e.texts(ctx, numbers)
	if err != nil {
		return err
	}
	for i, text := range texts {
		e.node.Neighbours.First[i].ID = text
	}
	return e.readK(ctx)
}

// readK reads K of the node and of its neighbours.
func (e *explanation) readK(ctx context.Context) error {
	files := e.cat.Entries(catalog.KindLSI)
	if len(files) == 0 {
		return nil
	}
	beside, at := e.beside.S, 0
	counts := map[int]int{}
	if err := shards.VisitK(ctx, e.cat, files, e.readers(), func(node int64, k int32, capped bool) {
		if node == e.node.Node {
			e.node.K = &K{int(k), capped}
		}
		for ; at < len(beside) && int64(beside[at]) == node; at++ {
			counts[int(k)]++
			if at < len(e.node.Neighbours.First) {
				k := int(k)
				e.node.Neighbours.First[at].K = &k
			}
		}
	}); err != nil {
		return err
	}
	for k, n := range counts {
		e.node.Neighbours.K = append(e.node.Neighbours.K, [2]int{k, n})
	}
	slices.SortFunc(e.node.Neighbours.K, func(a, b [2]int) int { return a[0] - b[0] })
	return nil
}

// hasAnswers reports whether nodes have labels or numbers in place of a class.
func (e *explanation) hasAnswers() bool { return len(e.cat.Entries(catalog.KindAnswers)) > 0 }

// predictions reads what the run says of the node's class, or of its labels or numbers.
func (e *explanation) predictions(ctx context.Context) (err error) {
	if e.node.Before, err = e.prediction(ctx, catalog.KindSoftLabels); err == nil {
		e.node.After, err = e.prediction(ctx, catalog.KindPredictions)
	}
	return err
}

// prediction reads the node's row of soft labels or predictions, nil if there is none.
func (e *explanation) prediction(ctx context.Context, kind string) (*Prediction, error) {
	for _, entry := range e.cat.Entries(kind) {
		r, err := e.cat.Open(ctx, entry)
		if err != nil {
			return nil, err
		}
		p, err := e.rowOf(r, entry.Path)
		if err = errors.Join(err, r.Close()); err != nil || p != nil {
			return p, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return nil, nil
}

// rowOf is the node's row of a file.
func (e *explanation) rowOf(r storageReader, path string) (*Prediction, error) {
	rows, err := shards.OpenRows(r, path)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for i := range rows.NumBatches() {
		_, n := rows.BatchRows(i)
		if int64(cap(ids)) < n {
			ids = make([]int64, n)
		}
		ids = ids[:n]
		if err := rows.ReadIDs(i, 0, ids); err != nil {
			return nil, err
		}
		row := slices.Index(ids, e.number)
		if row < 0 {
			continue
		}
		var b shards.RowBatch
		if err := rows.ReadBatch(i, &b); err != nil {
			return nil, err
		}
		width := rows.Schema().Values()
		values := b.Values[row*width : (row+1)*width]
		label := int32(-1)
		if rows.Schema().Label {
			label = b.Label[row]
		}
		return e.predicted(values, label, path)
	}
	return nil, nil
}

// predicted is a row of probabilities: of all classes, or of the class label alone.
func (e *explanation) predicted(values []float32, label int32, path string) (*Prediction, error) {
	if e.hasAnswers() {
		return &Prediction{Values: slices.Clone(values)}, nil
	}
	p := &Prediction{}
	if len(values) == len(e.sum.Classes) {
		if label < 0 {
			label = int32(slices.Index(values, slices.Max(values)))
		}
		p.Probabilities = slices.Clone(values)
	}
	class := e.class(label)
	switch {
	case class == nil:
		return nil, seal.Corrupt(path, "it predicts class %d of %d", label, len(e.sum.Classes))
	case p.Probabilities != nil:
		p.Probability = values[label]
	default:
		p.Probability = values[0]
	}
	p.Class = *class
	if e.node.Label != nil {
		right := e.node.Label.Number == label
		p.Right = &right
	}
	return p, nil
}

// tooSmall says what does not fit the budget.
func tooSmall(what string, err error) error {
	return fmt.Errorf("%s: %w; give more --memory", what, err)
}
