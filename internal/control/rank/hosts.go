package rank

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxHosts is the longest list of hosts that is expanded: above the largest
// machines, and small enough that a damaged list costs a few megabytes.
const MaxHosts = 1 << 16

// maxName is the longest name of a host, that of the domain name system.
const maxName = 255

// ErrHosts reports a list of hosts with an error of syntax or too many hosts.
var ErrHosts = errors.New("bad list of hosts")

// ExpandHosts lists the hosts of a compact list such as "a[1-3,7],b12": a1, a2,
// a3, a7, b12. An error wraps [ErrHosts] and quotes the part at fault.
func ExpandHosts(list string) ([]string, error) {
	var hosts []string
	for rest, more := list, true; more; {
		var item string
		item, rest, more = cutItem(rest)
		names, err := expandItem(item)
		if err != nil {
			return nil, err
		}
		if hosts = append(hosts, names...); len(hosts) > MaxHosts {
			return nil, tooMany(list)
		}
	}
	return hosts, nil
}

// cutItem splits at the first comma outside brackets.
func cutItem(s string) (item, rest string, more bool) {
	inside := false
	for i := range len(s) {
		switch s[i] {
		case '[':
			inside = true
		case ']':
			inside = false
		case ',':
			if !inside {
				return s[:i], s[i+1:], true
			}
		}
	}
	return s, "", false
}

func expandItem(item string) ([]string, error) {
	if item == "" {
		return nil, fmt.Errorf("rank: a name between commas is empty: %w", ErrHosts)
	}
	names := []string{""}
	for rest := item; rest != ""; {
		var parts []string
		if rest[0] == '[' {
			inner, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				return nil, fmt.Errorf("rank: %q has a bracket that does not close: %w", item, ErrHosts)
			}
			var err error
			if parts, err = expandRanges(inner); err != nil {
				return nil, err
			}
			rest = after
		} else {
			end := strings.IndexByte(rest, '[')
			if end < 0 {
				end = len(rest)
			}
			if i := strings.IndexFunc(rest[:end], notInName); i >= 0 {
				return nil, fmt.Errorf("rank: %q has %q, which no name of a host has: %w", item, rest[i], ErrHosts)
			}
			parts, rest = []string{rest[:end]}, rest[end:]
		}
		if len(names)*len(parts) > MaxHosts {
			return nil, tooMany(item)
		}
		names = product(names, parts)
		if len(names[0]) > maxName {
			return nil, fmt.Errorf("rank: %.40q... gives names of more than %d bytes: %w", item, maxName, ErrHosts)
		}
	}
	return names, nil
}

func expandRanges(inner string) ([]string, error) {
	var parts []string
	for r := range strings.SplitSeq(inner, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		lo, err := number(first)
		if err != nil {
			return nil, err
		}
		hi, err := number(last)
		if err != nil {
			return nil, err
		}
		if hi < lo {
			return nil, fmt.Errorf("rank: range %q runs backwards: %w", r, ErrHosts)
		}
		if hi-lo >= MaxHosts-int64(len(parts)) {
			return nil, tooMany(inner)
		}
		for i := lo; i <= hi; i++ {
			parts = append(parts, fmt.Sprintf("%0*d", len(first), i))
		}
	}
	return parts, nil
}

// number parses up to 18 digits, which an int64 holds, and nothing else.
func number(s string) (int64, error) {
	if s == "" || len(s) > 18 || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("rank: %.40q in brackets is not a number: %w", s, ErrHosts)
	}
	return strconv.ParseInt(s, 10, 64)
}

func notInName(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_')
}

// product appends every part to every name, parts fastest.
func product(names, parts []string) []string {
	all := make([]string, 0, len(names)*len(parts))
	for _, name := range names {
		for _, part := range parts {
			all = append(all, name+part)
		}
	}
	return all
}

func tooMany(list string) error {
	return fmt.Errorf("rank: %.40q gives more than %d hosts: %w", list, MaxHosts, ErrHosts)
}
