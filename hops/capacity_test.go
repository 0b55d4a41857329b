package hops

import (
	"testing"

	"ndls/internal/packed"
	"ndls/spmv"
)

// TestTeams says how many blocks are run side by side, and how wide each is.
func TestSide(t *testing.T) {
	for _, c := range []struct {
		what           string
		of             Capacity
		teams, columns int // of a block
	}{
		{"a thread each", Capacity{Nodes: 1000, Threads: 2, Columns: 64, Resident: true}, 2, 16},
		{"edges on disk", Capacity{Nodes: 1000, Threads: 2, Columns: 64}, 2, 32},
		{"float16", Capacity{Nodes: 1000, Threads: 2, Columns: 128, Resident: true, Precision: spmv.Float16}, 2, 32},
		{"one thread", Capacity{Nodes: 1000, Threads: 1, Columns: 64, Resident: true}, 1, 16},
		{"a strip for each thread", Capacity{Nodes: 2 * packed.StripRows, Threads: 2, Columns: 64, Resident: true}, 1, 16},
		{"two strips", Capacity{Nodes: 2 * packed.StripRows, Threads: 7, Columns: 64, Resident: true}, 3, 16},
		{"few columns", Capacity{Nodes: 1000, Threads: 6, Columns: 40, Resident: true}, 3, 16},
		{"one panel", Capacity{Nodes: 1000, Threads: 6, Columns: 7, Resident: true}, 1, 16},
		{"many threads", Capacity{Nodes: 1000, Threads: 64, Columns: 7000, Resident: true}, 8, 128},
		{"asked for", Capacity{Nodes: 1000, Threads: 2, Columns: 64, Resident: true, Asked: 64}, 2, 16},
		{"other workers", Capacity{Nodes: 1000, Others: 9, Threads: 2, Columns: 64, Resident: true}, 1, 32},
	} {
		teams := c.of.Side()
		columns := packed.Panels(c.of.Useful().Columns) * packed.PanelColumns
		if teams > 1 {
			columns = c.of.Team(teams).Useful().Columns
		}
		if teams != c.teams || columns != c.columns {
			t.Errorf("%s: %d teams with %d columns, want %d with %d", c.what, teams, columns, c.teams, c.columns)
		}
	}
}

// TestAgreedColumns: workers that share rows have the columns that they agreed on, also where fewer columns are to be propagated.
func TestAgreedColumns(t *testing.T) {
	for _, tc := range []struct{ columns, agreed, want int }{{128, 0, 16}, {128, 32, 32}, {40, 48, 48}, {8, 16, 16}, {8, 0, 16}, {3, 16, 16}} {
		c := Capacity{Nodes: 1000, Others: packed.StripRows, Free: 1 << 30, Threads: 1, Columns: tc.columns}.Agreed(tc.agreed)
		l, _, err := c.Layout(func(spmv.Layout) int64 { return 0 })
		if err != nil || l.Columns != tc.want {
			t.Errorf("%d columns, agreed on %d: %d, %v", tc.columns, tc.agreed, l.Columns, err)
		}
	}
}

// TestSafe: with so many free bytes what is needed fits, whether or not edges are in memory.
func TestSafe(t *testing.T) {
	for _, edges := range []int64{0, 1, 50, 333, 334, 5000} {
		for need := int64(1); need < 3000; need += 7 {
			fits := func(free, edges int64) bool {
				return !Resident(edges, free) && need <= free || Resident(edges, free) && edges+need <= free
			}
			if free := SafeFree(edges, need); !fits(free, edges) {
				t.Errorf("%d bytes of edges, %d needed: %d are not enough", edges, need, free)
			}
			for some := int64(0); some <= edges; some += max(edges/50, 1) {
				if free := SafeShare(edges, need); !fits(free, some) {
					t.Errorf("%d bytes of edges of %d, %d needed: %d are not enough", some, edges, need, free)
				}
			}
		}
	}
}
