package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ndls/internal/failure"
)

func TestParseHops(t *testing.T) {
	for _, c := range []struct {
		list string
		want []int
		same string // as HopList writes it
	}{
		{"", nil, ""},
		{"0", []int{0}, "0"},
		{"0..3", []int{0, 1, 2, 3}, "0..3"},
		{"3,0,1", []int{0, 1, 3}, "0..1,3"},
		{"5, 0..2,1..2", []int{0, 1, 2, 5}, "0..2,5"},
		{"7..7", []int{7}, "7"},
	} {
		got, err := ParseHops(c.list)
		if err != nil || !slices.Equal(got, c.want) || HopList(got) != c.same {
			t.Errorf("%q: %v as %q, %v", c.list, got, HopList(got), err)
		}
		if again, err := ParseHops(HopList(got)); err != nil || !slices.Equal(again, got) {
			t.Errorf("%q: %v after writing, %v", c.list, again, err)
		}
	}
	for list, want := range map[string]string{
		"x": `"x" is no hop from 0 to 32767`, "-1": "is no hop", "0..": `"" is no hop`, "3..1": "the range 3..1 ends before it begins",
		"0,,1": "is no hop", "0..5000": "more than 4096 hops", "40000": "is no hop", "1...3": "is no hop",
	} {
		p := Default()
		p.Smooth.KeepHops = list
		if err := p.Validate(); !errors.Is(err, failure.ErrOption) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--keep-hops") {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}
