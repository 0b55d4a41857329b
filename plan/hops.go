package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostKept is the largest number of kept hops.
const mostKept = 4096

// ParseHops reads a list of hops: numbers, and ranges such as 0..3, with commas between them.
// The hops are in ascending order, each once.
func ParseHops(list string) (hops []int, err error) {
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "..")
		if !isRange {
			last = first
		}
		lo, err := parseHop(first)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", list, err)
		}
		hi, err := parseHop(last)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", list, err)
		}
		if hi < lo {
			return nil, fmt.Errorf("%q: the range %s ends before it begins", list, part)
		}
		for hop := lo; hop <= hi && len(hops) <= mostKept; hop++ {
			hops = append(hops, hop)
		}
	}
	slices.Sort(hops)
	if hops = slices.Compact(hops); len(hops) > mostKept {
		return nil, fmt.Errorf("%q names more than %d hops", list, mostKept)
	}
	return hops, nil
}

func parseHop(text string) (int, error) {
	hop, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || hop < 0 || hop > maxHops {
		return 0, fmt.Errorf("%q is no hop from 0 to %d; write a range such as 0..3, or hops such as 0,1,3", text, maxHops)
	}
	return hop, nil
}

// HopList writes hops, which must be in ascending order, in the form that ParseHops reads: the same
// hops always give the same text.
func HopList(hops []int) string {
	var parts []string
	for len(hops) > 0 {
		n := 1
		for n < len(hops) && hops[n] == hops[0]+n {
			n++
		}
		switch {
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d..%d", hops[0], hops[n-1]))
		default:
			parts = append(parts, strconv.Itoa(hops[0]))
		}
		hops = hops[n:]
	}
	return strings.Join(parts, ",")
}
