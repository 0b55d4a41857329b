package train

import (
	"encoding/json"
	"testing"

	"ndls/internal/mem"
)

func TestTally(t *testing.T) {
	var tally Tally
	tally.Add(nil, nil, nil)
	tally.Add([]float32{0.6, 0.4, 0.1, 0.9, 0.5, 0.5, 0.2, 0.8},
		[]int32{0, 0, 0, -1}, []uint8{Train, Train, Test, Test})
	tally.Add([]float32{0.1, 0.9}, []int32{1}, []uint8{Test})
	for split, want := range map[uint8]struct {
		share float64
		rows  int64
	}{Train: {0.5, 2}, Test: {1, 2}, Valid: {0, 0}, NoSplit: {0, 0}} {
		if share, rows := tally.Accuracy(split); share != want.share || rows != want.rows {
			t.Errorf("split %d: %v of %d rows, want %v", split, share, rows, want)
		}
	}
}

// Tallies in memory of a budget count as others do, and take what is planned for them.
func TestTallies(t *testing.T) {
	const n, classes = 3, 50
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	free := b.Free()
	tallies, err := NewTallies(b, n, classes)
	if err != nil {
		t.Fatal(err)
	}
	if took := free - b.Free(); took > TalliesBytes(n, classes) || took < TalliesBytes(n, classes)-4096 {
		t.Errorf("%d bytes taken, %d planned", took, TalliesBytes(n, classes))
	}
	var want [n]Tally
	for i := range want {
		for class := range int32(classes) {
			label, predicted, split := []int32{(class * 7) % classes}, []int32{(class * int32(i)) % classes}, []uint8{uint8(class) % numSplits}
			want[i].Count(predicted, label, split)
			if tallies.Of[i].Count(predicted, label, split); i > 0 {
				want[0].Merge(want[i])
				tallies.Of[0].Merge(tallies.Of[i])
			}
		}
	}
	for i := range want {
		got, err := json.Marshal(tallies.Of[i])
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(want[i]); err != nil || string(text) != string(got) {
			t.Errorf("tally %d: %s, want %s, %v", i, got, text, err)
		}
	}
	tallies.Free()
	if b.Free() != free {
		t.Errorf("%d of %d bytes are free", b.Free(), free)
	}
}

func TestArgmax(t *testing.T) {
	for want, p := range [][]float32{{0.5, 0.5, 0}, {0.1, 0.8, 0.1}, {0, 0.4, 0.6}} {
		if got := Argmax(p); got != int32(want) {
			t.Errorf("Argmax(%v) = %d, want %d", p, got, want)
		}
	}
}
