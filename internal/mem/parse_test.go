package mem

import "testing"

func TestParseBytes(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"8GiB", 8 << 30, true},
		{"1.5G", 3 << 29, true},
		{"500MB", 500_000_000, true},
		{"12 kB", 12_000, true},
		{"4096", 4096, true},
		{"4096B", 4096, true},
		{"", 0, false},
		{"-1GiB", 0, false},
		{"GiB", 0, false},
		{"NaN", 0, false},
		{"1e30TiB", 0, false},
		{"8 gigs", 0, false},
	} {
		got, err := ParseBytes(tc.text)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", tc.text, got, err, tc.want)
		}
	}
}
