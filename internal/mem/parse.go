package mem

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var byteUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"K", 1 << 10},
	{"M", 1 << 20},
	{"G", 1 << 30},
	{"T", 1 << 40},
	{"B", 1},
	{"", 1},
}

// ParseBytes reads "8GiB", "1.5G", "500MB" or a plain number of bytes.
func ParseBytes(s string) (int64, error) {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if bytes := x * u.bytes; err == nil && bytes >= 0 && bytes < math.MaxInt64 {
			return int64(bytes), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is no amount of memory; write it like 8GiB or 500MB", s)
}
