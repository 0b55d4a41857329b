package measures

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/plan"
	"ndls/train"
)

// TestBreakdown counts the predictions of some nodes one by one, in pieces and merged, and compares the report
// with sums over the nodes.
func TestBreakdown(t *testing.T) {
	for _, classes := range []int{2, confusedClasses, confusedClasses + 1, 172} {
		t.Run(fmt.Sprint(classes), func(t *testing.T) {
			const n, kmax = 5000, 500
			p := plan.Default()
			p.LSI.Kmax = kmax
			random := rand.New(rand.NewPCG(1, uint64(classes)))
			budget, err := mem.NewBudget(mem.MinBudget)
			if err != nil {
				t.Fatal(err)
			}
			truth, err := NewLabelled(budget, n, 2)
			if err != nil {
				t.Fatal(err)
			}
			defer truth.Free()
			degree, k, predicted := make([]int64, n), make([]int64, n), make([]int32, n)
			for i := range n {
				degree[i], k[i], predicted[i] = random.Int64N(1<<random.IntN(20)), random.Int64N(kmax+1), int32(random.IntN(classes))
				truth.Label.S[i], truth.splits[0].S[i], truth.splits[1].S[i] = int32(random.IntN(classes+1)-1), uint8(random.IntN(4)), train.Test
				if random.IntN(2) == 0 {
					predicted[i] = max(truth.Label.S[i], 0)
				}
			}
			count := func(lo, hi int) *Breakdown {
				b := &Counter{truth: truth, place: places(truth, classes)}
				of, err := mem.Alloc[uint16](budget, n, "ranges")
				if err != nil {
					t.Fatal(err)
				}
				b.of = of
				for i := range n {
					of.S[i] = numberOfRanges(degree[i], k[i], spanOfK(p))
				}
				defer of.Free()
				for at := lo; at < hi; at += 7 {
					b.Add(int64(at), predicted[at:min(at+7, hi)])
				}
				return &b.Breakdown
			}
			whole, sum := count(0, n), count(0, 1234)
			sum.Merge(count(1234, n))
			if *sum != *whole {
				t.Fatal("parts do not add up to the whole")
			}
			tallies := make([]train.ClassTally, classes)
			names := make([]string, classes)
			for c := range names {
				names[c] = fmt.Sprint("c", c)
			}
			right, test := int64(0), int64(0)
			for i := range n {
				if label := truth.Label.S[i]; truth.splits[0].S[i] == train.Test && label >= 0 {
					tallies[label].Rows++
					test++
					if label == predicted[i] {
						right++
					}
				}
			}
			r := whole.Report(p, names, tallies)
			for name, list := range map[string][]control.RangeRight{"degree": r.Degrees, "K": r.K} {
				of := map[string][]int64{"degree": degree, "K": k}[name]
				var all control.RangeRight
				for at, x := range list {
					if at > 0 && x.From <= list[at-1].To || len(list) > control.MaxLines+1 {
						t.Fatalf("ranges of %s overlap, or are too many: %v", name, list)
					}
					want := control.RangeRight{From: x.From, To: x.To}
					for i := range n {
						if label := truth.Label.S[i]; truth.splits[0].S[i] == train.Test && label >= 0 && x.From <= of[i] && of[i] <= x.To {
							want.Nodes++
							if label == predicted[i] {
								want.Right++
							}
						}
					}
					if x != want {
						t.Errorf("%s: %+v, want %+v", name, x, want)
					}
					all.Nodes, all.Right = all.Nodes+x.Nodes, all.Right+x.Right
				}
				if all.Nodes != test || all.Right != right {
					t.Errorf("%s: %+v of %d test nodes, %d right", name, all, test, right)
				}
			}
			c := r.Confusion
			if want := max(classes-confusedClasses, 0); c.Others != want || len(c.Counts) != len(c.Classes)+min(want, 1) {
				t.Fatalf("%d rows for %d classes and %d others", len(c.Counts), len(c.Classes), c.Others)
			}
			diagonal, cells := int64(0), int64(0)
			for i, row := range c.Counts {
				total := int64(0)
				for _, x := range row {
					cells, total = cells+x, total+x
				}
				if i < len(c.Classes) {
					diagonal += row[i]
					var class int
					if _, err := fmt.Sscanf(c.Classes[i], "c%d", &class); err != nil || tallies[class].Rows != total {
						t.Errorf("the row of %s has %d nodes, want %d", c.Classes[i], total, tallies[class].Rows)
					}
				}
			}
			if cells != test || c.Others == 0 && diagonal != right {
				t.Errorf("the matrix has %d nodes, %d on its diagonal; want %d and %d", cells, diagonal, test, right)
			}
		})
	}
	if (&Breakdown{}).Report(plan.Default(), nil, nil) != nil {
		t.Error("no test node makes a breakdown")
	}
}

// TestFollower finds the rows of some nodes among all.
func TestFollower(t *testing.T) {
	rows := [][]int64{{3, 9}, {}, {4}, {}, {8}}
	f := followIDs(func(yield func([]int64, error) bool) {
		for _, x := range rows {
			if !yield(x, nil) {
				return
			}
		}
	})
	defer f.stop()
	var got []int64
	for _, id := range []int64{7, 3, 9, 1, 4, 8, 2} {
		if row, ok := f.next(id); ok {
			got = append(got, id, row)
		}
	}
	if fmt.Sprint(got) != "[3 0 9 1 4 2 8 3]" {
		t.Errorf("rows %v", got)
	}
	all := followIDs(nil)
	for i := range int64(3) {
		if row, ok := all.next(99); !ok || row != i {
			t.Errorf("row %d of node %d", row, i)
		}
	}
}
