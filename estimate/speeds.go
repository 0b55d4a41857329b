package estimate

import (
	"cmp"
	"math"

	"ndls/internal/control"
)

// usual holds the speeds of a machine that was not measured: a thread of a server of 2023, and its disk.
var usual = control.Speeds{Edges: 110e6, Near: 270e6, Flops: 80e9, Values: 15e6, Write: 0.5e9, Read: 1e9}

// withUsual returns s with usual speeds in place of those that were not measured.
func withUsual(s control.Speeds) control.Speeds {
	return control.Speeds{
		Edges: cmp.Or(s.Edges, usual.Edges), Near: cmp.Or(s.Near, usual.Near), Flops: cmp.Or(s.Flops, usual.Flops),
		Values: cmp.Or(s.Values, usual.Values), Write: cmp.Or(s.Write, usual.Write), Read: cmp.Or(s.Read, usual.Read),
	}
}

// movedValues is the number of values that a thread reads from tiles, scales or stores in the time in which it puts one key in order.
const movedValues = 8

// Sorts adds putting so many keys in order.
func (s *Sheet) Sorts(keys float64) { s.seconds += keys / s.speeds.Values / float64(s.Threads) }

// Moves adds values that are read, converted or stored.
func (s *Sheet) Moves(values float64) { s.Sorts(values / movedValues) }

// Multiplies adds float32 operations of matrix products.
func (s *Sheet) Multiplies(flops float64) { s.seconds += flops / s.speeds.Flops / float64(s.Threads) }

// edgeRate returns the edges a second and thread for rows of so many bytes together: between the two sizes that are measured the rate falls
// by the same factor with each doubling.
func (s *Sheet) edgeRate(bytes int64) float64 {
	beyond := math.Log(float64(max(bytes, control.NearBytes))/control.NearBytes) / math.Log(control.FarBytes/control.NearBytes)
	return s.speeds.Near * math.Pow(s.speeds.Edges/s.speeds.Near, min(beyond, 1))
}
