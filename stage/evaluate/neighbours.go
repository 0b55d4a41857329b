package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
)

// Averages of neighbours help a model if neighbours share their class more often than chance. Where they do not, evaluate warns. It counts
// the edges between training nodes of the first split, whose labels a user may look at.

const (
	// mostJoined is the largest number of edges, of both directions, that are read to measure neighbours: a second of one thread.
	mostJoined = 1 << 26
	// leastJoined is the least number of edges between training nodes, of both directions, for a warning.
	leastJoined = 1000
	// leastAlike is the share of classes, beyond chance, below which neighbours differ. Platonov et al. (2023) call it adjusted homophily: it
	// is 0.77 for Cora, and from 0.01 to 0.03 for minesweeper, chameleon_filtered and squirrel_filtered.
	leastAlike = 0.1
)

// joins counts edges between training nodes, in both directions.
type joins struct {
	all, alike int64
	// ends counts the edges that lead to nodes of each class.
	ends []int64
}

// chance returns the share of edges that would join nodes of a class if the other end of each edge were drawn anew.
func (j joins) chance() float64 {
	sum := 0.0
	for _, n := range j.ends {
		share := float64(n) / float64(j.all)
		sum += float64(share * share)
	}
	return sum
}

// warning says that neighbours differ, "" if they do not or if few edges tell.
func (j joins) warning(p plan.Options) string {
	if j.all < leastJoined || p.Smooth.Rule == "sign" || p.Embeds() {
		return ""
	}
	chance, alike := j.chance(), float64(j.alike)/float64(j.all)
	if chance == 1 || (alike-chance)/(1-chance) >= leastAlike {
		return ""
	}
	return fmt.Sprintf("neighbours differ: of %d edges between training nodes %.1f %% join nodes of one class, and %.1f %% would by chance. Averages of neighbours, as of --rule %s, may then lose what tells nodes apart; --rule sign keeps the node's own row and each hop side by side, and was better on minesweeper and chameleon_filtered: try it with --hops 2, --input-norm standard, --hidden 256 and --hidden-norm layer, and where many nodes are labelled with --label-columns 10",
		j.all/2, 100*alike, 100*chance, p.Smooth.Rule)
}

// measuresJoins reports whether evaluate reads the edges of a graph.
func measuresJoins(edges int64, directed bool) bool { return !directed && 2*edges <= mostJoined }

// joinsBytes returns the memory for counting them.
func joinsBytes(nodes int64, classes int) int64 { return 4*nodes + 8*int64(classes) + 2*4096 }

// countJoins counts the edges between training nodes.
func countJoins(ctx context.Context, env *stage.Env) (j joins, err error) {
	s := env.Summary
	class, err := mem.Alloc[int32](env.Budget, s.Nodes, "classes of training nodes")
	if err != nil {
		return j, err
	}
	defer class.Free()
	ends, err := mem.Alloc[int64](env.Budget, int64(len(s.Classes)), "edges by class")
	if err != nil {
		return j, err
	}
	defer ends.Free()
	j.ends = ends.S
	if err := env.Nodes().Read(ctx, shards.NodeLabel|shards.NodeSplit, func(first int64, b shards.NodeBatch) {
		for i, label := range b.Label {
			class.S[first+int64(i)] = -1
			if stage.IsTraining(b.Split[i], label) {
				class.S[first+int64(i)] = label
			}
		}
	}); err != nil {
		return j, err
	}
	if err := partition.EnsureHops(ctx, env.Catalog); err != nil {
		return j, err
	}
	stream, err := shards.OpenHopStream(ctx, env.Catalog)
	if err != nil {
		return j, err
	}
	defer stream.Close()
	for strip := range stream.Strips() {
		if err := j.add(ctx, stream, strip, class.S); err != nil {
			return j, err
		}
	}
	j.ends = append([]int64(nil), j.ends...)
	return j, nil
}

// add counts the edges into the rows of a strip.
func (j *joins) add(ctx context.Context, stream *shards.HopStream, strip int, class []int32) (err error) {
	if stream.Edges(strip) == 0 {
		return nil
	}
	frames, err := stream.Open(ctx, strip, 0, uint32(len(class)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, frames.Close()) }()
	rows := class[strip<<packed.StripShift:]
	for {
		f, err := frames.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		f.Visit(func(src, row uint32) {
			a, b := class[src], rows[row]
			if a < 0 || b < 0 {
				return
			}
			j.all++
			j.ends[b]++
			if a == b {
				j.alike++
			}
		})
	}
}
