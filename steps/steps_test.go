package steps

import (
	"slices"
	"testing"
)

// TestCutByWeight: no task has much more work than another one could have.
func TestCutByWeight(t *testing.T) {
	l := Left{Step: "rows", Pieces: Units(9), Weights: []int64{50, 9, 9, 9, 9, 9, 2, 2, 1}}
	for workers, want := range map[int][]Piece{
		1: {{0, 9}},
		2: {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 7}, {7, 9}},
		9: {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}, {8, 9}},
	} {
		if got := l.Cut(workers); !slices.Equal(got, want) {
			t.Errorf("%d workers: %v, want %v", workers, got, want)
		}
	}
}

// TestCut: pieces that lie side by side are joined to as many tasks as a step has for these workers.
func TestCut(t *testing.T) {
	for name, tc := range map[string]struct {
		left    Left
		workers int
		want    []Piece
	}{
		"one worker":             {Left{Pieces: Units(9)}, 1, []Piece{{0, 9}}},
		"two tasks for a worker": {Left{Pieces: Units(9)}, 2, []Piece{{0, 3}, {3, 6}, {6, 9}}},
		"a gap":                  {Left{Pieces: []Piece{{0, 1}, {1, 2}, {5, 6}}}, 1, []Piece{{0, 2}, {5, 6}}},
		"one for each worker":    {Left{Pieces: Units(7), Count: Each}, 2, []Piece{{0, 4}, {4, 7}}},
		"no worker":              {Left{Pieces: Units(7), Count: Each}, 0, []Piece{{0, 7}}},
		"nothing":                {Left{}, 3, nil},
	} {
		if got := tc.left.Cut(tc.workers); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestRepeats: a step whose pieces stay the same has left no files.
func TestRepeats(t *testing.T) {
	l := Left{Step: "rows", Pieces: Units(2)}
	if !l.Repeats(l) || l.Repeats(Left{Step: "rows", Pieces: Units(1)}) || l.Repeats(Left{Step: "merge", Pieces: Units(2)}) {
		t.Error("the same pieces of the same step repeat, and no others")
	}
	if nothing := (Left{}); nothing.Repeats(nothing) || !nothing.Done() || l.Done() {
		t.Error("work that is done does not repeat")
	}
}

// TestPieces splits pieces, and finds what others leave uncovered.
func TestPieces(t *testing.T) {
	if got := (Piece{2, 9}).Split(3); !slices.Equal(got, []Piece{{2, 4}, {4, 6}, {6, 9}}) {
		t.Errorf("parts %v", got)
	}
	if got := Unit(4).Split(3); !slices.Equal(got, []Piece{{4, 5}}) {
		t.Errorf("parts %v of one number", got)
	}
	there := []Piece{{0, 2}, {4, 8}}
	if got := Uncovered(there, Units(9)); !slices.Equal(got, []Piece{{2, 3}, {3, 4}, {8, 9}}) {
		t.Errorf("uncovered %v", got)
	}
	if !(Piece{4, 8}).In(there) || Unit(3).In(there) {
		t.Error("a piece lies in others that hold all of it")
	}
}
