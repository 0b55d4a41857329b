package share

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Part is one of N parts of some work: the I-th, from 1 on. Each may be done by another machine that knows nothing of
// the others, since what belongs to a part follows from I, N and the work alone. The zero value is all of the work.
type Part struct{ I, N int }

// ParsePart reads I/N, such as 3/8.
func ParsePart(text string) (Part, error) {
	first, second, found := strings.Cut(text, "/")
	i, err := strconv.Atoi(first)
	n, failed := strconv.Atoi(second)
	if p := (Part{i, n}); found && err == nil && failed == nil && p.inside() {
		return p, nil
	}
	return Part{}, noPart(strconv.Quote(text))
}

func noPart(text string) error {
	return errors.New(text + " is no part; give I/N, such as 3/8, where I is from 1 to N")
}

func (p Part) inside() bool { return 1 <= p.I && p.I <= p.N }

// Whole says that the part is all of the work.
func (p Part) Whole() bool { return p.N <= 1 }

// Validate refuses what is neither the zero value nor a part.
func (p Part) Validate() error {
	if p == (Part{}) || p.inside() {
		return nil
	}
	return noPart(fmt.Sprintf("%d/%d", p.I, p.N))
}

// Range is the numbers [lo, hi) of [0, n) that belong to the part. Parts have about as many, in their order.
func (p Part) Range(n int64) (lo, hi int64) {
	if p.Whole() {
		return 0, n
	}
	at := func(i int) int64 {
		high, low := bits.Mul64(uint64(n), uint64(i))
		border, _ := bits.Div64(high, low, uint64(p.N))
		return int64(border)
	}
	return at(p.I - 1), at(p.I)
}

// Items returns the items of a list that belong to the part, in ascending order. An item belongs to
// one part. The sizes of parts differ little: the largest items are dealt first, each to the part
// that has least.
func (p Part) Items(sizes []int64) (mine []int) {
	all := make([]int, len(sizes))
	for i := range all {
		all[i] = i
	}
	if p.Whole() {
		return all
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	parts := make(loads, min(p.N, len(sizes))) // further ones have nothing
	for i := range parts {
		parts[i].part = i + 1
	}
	for _, item := range all {
		least := &parts[0]
		if least.part == p.I {
			mine = append(mine, item)
		}
		least.size += sizes[item]
		heap.Fix(&parts, 0)
	}
	slices.Sort(mine)
	return mine
}

// loads holds the loads of parts, with the least one in front.
type loads []struct {
	size int64
	part int
}

func (l loads) Len() int      { return len(l) }
func (l loads) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l loads) Less(i, j int) bool {
	return l[i].size < l[j].size || l[i].size == l[j].size && l[i].part < l[j].part
}

// Push and Pop are not used: the number of parts stays.
func (l *loads) Push(any) {}
func (l *loads) Pop() any { return nil }

// String implements pflag.Value: it is I/N, or nothing for all of the work.
func (p *Part) String() string {
	if p == nil || *p == (Part{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.I, p.N)
}

// Set implements pflag.Value.
func (p *Part) Set(text string) (err error) {
	*p, err = ParsePart(text)
	return err
}

// Type implements pflag.Value: the help shows it.
func (*Part) Type() string { return "I/N" }
