package labels

import (
	"context"

	"ndls/internal/mem"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage/measures"
)

// chosenNodes holds some nodes with labels.
type chosenNodes struct {
	targets *smooth.Targets
	label   *mem.Array[int32] // of each node
	learned measures.Labelled // the labels or numbers of each node, if nodes have these in place of classes
	in      []validators      // by split
	of      int64             // number of nodes from which they were chosen
}

// validators reports for each of the nodes whether it matches in a split.
type validators struct{ is *mem.Array[bool] }

// count returns the number of nodes that match.
func (x validators) count() (n int64) {
	for _, is := range x.is.S {
		if is {
			n++
		}
	}
	return n
}

func (v *chosenNodes) count() int64 { return v.targets.Len() }

func (v *chosenNodes) free() {
	v.targets.Free()
	v.label.Free()
	v.learned.Answers.Free()
	for _, x := range v.in {
		x.is.Free()
	}
}

// someLabelled returns nodes that match in one of these splits: at most `most` nodes, spread evenly among all that match.
func (env labelsRun) someLabelled(ctx context.Context, of []int, match func(split uint8, label int32) bool,
	most int64,
) (_ *chosenNodes, err error) {
	v := &chosenNodes{}
	if v.targets, err = smooth.NewTargets(env.Budget, env.Summary.Nodes); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.free()
		}
	}()
	var split [][]uint8 // of a batch of nodes
	var label []int32
	in := func(s int, i int64) bool { return match(split[s][i], label[i]) }
	each := func(visit func(first, lo, hi int64)) error {
		return env.Nodes().ReadSplits(ctx, shards.NodeLabel, func(first int64, b shards.NodeBatch, splits [][]uint8) {
			split, label = splits, b.Label
			env.shareNodes(first, int64(len(label)), func(lo, hi int64) { visit(first, lo, hi) })
		})
	}
	if err = each(func(first, lo, hi int64) {
		for node := lo; node < hi; node++ {
			for _, s := range of {
				if in(s, node-first) {
					v.targets.Add(node)
					break
				}
			}
		}
	}); err != nil {
		return nil, err
	}
	v.targets.Finish()
	v.of = v.targets.Len()
	v.targets.Thin(env.Resources.Threads, most)
	if v.label, err = mem.Alloc[int32](env.Budget, v.count(), "labels of some nodes"); err != nil {
		return nil, err
	}
	for range of {
		is, err := mem.Alloc[bool](env.Budget, v.count(), "nodes of a split")
		if err != nil {
			return nil, err
		}
		v.in = append(v.in, validators{is})
	}
	err = each(func(first, lo, hi int64) {
		at := v.targets.Below(lo)
		for node := lo; node < hi; node++ {
			if !v.targets.Has(node) {
				continue
			}
			v.label.S[at] = label[node-first]
			for s, x := range v.in {
				x.is.S[at] = in(of[s], node-first)
			}
			at++
		}
	})
	if err == nil && env.Plan.Answers() {
		err = env.takeChosen(ctx, v)
	}
	return v, err
}

// takeChosen reads the labels or numbers of chosen nodes.
func (env labelsRun) takeChosen(ctx context.Context, v *chosenNodes) error {
	node, err := mem.Alloc[uint32](env.Budget, v.count(), "chosen nodes")
	if err != nil {
		return err
	}
	defer node.Free()
	at := 0
	for i := range env.Summary.Nodes {
		if v.targets.Has(i) {
			node.S[at] = uint32(i)
			at++
		}
	}
	v.learned.Label = v.label
	return measures.TakeAnswers(ctx, env.Env, &v.learned, node.S)
}

// sharedNodes is the number of nodes that a thread takes at a time.
const sharedNodes = 1 << 13

// shareNodes divides n nodes from first on into ranges and calls do for them on all threads. No two threads write the same word of a bit
// set.
func (env labelsRun) shareNodes(first, n int64, do func(lo, hi int64)) {
	begin := first / sharedNodes
	_ = share.Each(env.Resources.Threads, int((first+n+sharedNodes-1)/sharedNodes-begin), func(part int) error {
		lo := (begin + int64(part)) * sharedNodes
		do(max(lo, first), min(lo+sharedNodes, first+n))
		return nil
	})
}
