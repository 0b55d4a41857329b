package share

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestParsePart(t *testing.T) {
	for text, want := range map[string]Part{"1/1": {1, 1}, "3/8": {3, 8}, "8/8": {8, 8}, "100000/100000": {100_000, 100_000}} {
		p, err := ParsePart(text)
		if err != nil || p != want || p.String() != text || p.Validate() != nil {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "8", "0/8", "9/8", "-1/8", "1/0", "0/0", "a/b", "3/", "/8", "3/8/9", "3 / 8", "1/99999999999999999999"} {
		p := Part{2, 3}
		err := p.Set(text)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q is no part; give I/N", text)) {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
	if err := (Part{9, 8}).Validate(); err == nil || !strings.Contains(err.Error(), "9/8") {
		t.Errorf("part 9 of 8: %v", err)
	}
	var whole Part
	if whole.Validate() != nil || !whole.Whole() || whole.String() != "" {
		t.Errorf("the zero value is %v", whole)
	}
}

// Ranges follow each other from 0 to n, and are as long as each other but for one.
func TestRangesOfParts(t *testing.T) {
	for _, n := range []int64{0, 1, 7, 100, 1_615_685_872, 1 << 62} {
		for _, parts := range []int{1, 2, 3, 8, 1000} {
			end := int64(0)
			for i := 1; i <= parts; i++ {
				lo, hi := Part{i, parts}.Range(n)
				if lo != end || hi-lo < n/int64(parts) || hi-lo > n/int64(parts)+1 {
					t.Fatalf("part %d of %d of %d is [%d, %d), and the one before ends at %d", i, parts, n, lo, hi, end)
				}
				end = hi
			}
			if end != n {
				t.Errorf("%d parts of %d end at %d", parts, n, end)
			}
		}
	}
	if lo, hi := (Part{}).Range(7); lo != 0 || hi != 7 {
		t.Errorf("all of 7 is [%d, %d)", lo, hi)
	}
}

// Each item is in one part. No part has more than another by more than its largest item.
func TestItemsOfParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 5, 300} {
		sizes := make([]int64, n)
		for i := range sizes {
			sizes[i] = rng.Int64N(1000) * rng.Int64N(100)
		}
		for _, parts := range []int{1, 2, 7, 400} {
			var all []int
			var loads []int64
			for i := 1; i <= parts; i++ {
				mine := Part{i, parts}.Items(sizes)
				if !slices.IsSorted(mine) {
					t.Errorf("part %d of %d has %v", i, parts, mine)
				}
				all = append(all, mine...)
				load := int64(0)
				for _, item := range mine {
					load += sizes[item]
				}
				loads = append(loads, load)
			}
			slices.Sort(all)
			for i := range all {
				if all[i] != i {
					t.Fatalf("%d items in %d parts: %v", n, parts, all)
				}
			}
			if len(all) != n {
				t.Fatalf("%d items in %d parts: %v", n, parts, all)
			}
			if n > 0 && slices.Max(loads)-slices.Min(loads) > slices.Max(sizes) {
				t.Errorf("%d items, the largest of %d, make parts of %v", n, slices.Max(sizes), loads)
			}
		}
	}
	if all := (Part{}).Items([]int64{5, 6}); !slices.Equal(all, []int{0, 1}) {
		t.Errorf("all items are %v", all)
	}
}
