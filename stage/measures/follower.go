package measures

import (
	"iter"
)

// follower finds the rows of nodes; rows and nodes are in the same order.
type follower struct {
	pull func() ([]int64, error, bool) // nil if each node has a row
	stop func()
	ids  []int64 // of the rows from row on
	row  int64
	err  error
}

func followIDs(ids iter.Seq2[[]int64, error]) *follower {
	f := &follower{stop: func() {}}
	if ids != nil {
		f.pull, f.stop = iter.Pull2(ids)
	}
	return f
}

// next returns the row of the node with an input id, if it has one. The caller asks for all nodes in order.
func (f *follower) next(id int64) (row int64, ok bool) {
	if f.pull == nil {
		f.row++
		return f.row - 1, true
	}
	for more := true; more && len(f.ids) == 0 && f.err == nil; {
		f.ids, f.err, more = f.pull()
	}
	if len(f.ids) == 0 || f.ids[0] != id {
		return 0, false
	}
	f.ids, f.row = f.ids[1:], f.row+1
	return f.row - 1, true
}
