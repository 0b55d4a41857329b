package dense

import "math"

// normEpsilon is added to variances, as in torch.nn.LayerNorm.
const normEpsilon = 1e-5

// Normalize writes (x − mean) / deviation to to, which has the length of x and may be x, and returns 1 / deviation. The deviation is the
// root of the mean square of x − mean, plus 1e-5 (Ba, Kiros and Hinton, Layer Normalization, 2016). x has at least one value.
//
// It adds every fourth value as float64, in ascending order, then the first two of the four sums, the last two, and the results.
func Normalize(to, x []float32) (inverse float32) {
	n := float64(len(x))
	mean := sumFrom(x, 0) / n
	variance := squaresFrom(x, mean) / n
	scale := 1 / math.Sqrt(variance+normEpsilon)
	for i, v := range x {
		to[i] = float32((float64(v) - mean) * scale)
	}
	return float32(scale)
}

// NormalizeBack turns the gradient of what [Normalize] wrote into that of what it read: with g for the gradient and n for the written row,
// it replaces g by inverse·(g − mean(g) − n·mean(g·n)). Both have the same length. Sums are added as those of Normalize.
func NormalizeBack(g, n []float32, inverse float32) {
	var sums, along [4]float64
	for i, v := range g {
		sums[i&3] += float64(v)
		along[i&3] += float64(float64(v) * float64(n[i]))
	}
	count := float64(len(g))
	mean, slope := joined(sums)/count, joined(along)/count
	for i, v := range g {
		g[i] = float32(float64(inverse) * (float64(v) - mean - float64(slope*float64(n[i]))))
	}
}

// sumFrom adds the values of x, less a value.
func sumFrom(x []float32, from float64) float64 {
	var sums [4]float64
	for i, v := range x {
		sums[i&3] += float64(v) - from
	}
	return joined(sums)
}

// squaresFrom adds the squares of the values of x, less a value.
func squaresFrom(x []float32, from float64) float64 {
	var sums [4]float64
	for i, v := range x {
		d := float64(v) - from
		sums[i&3] += float64(d * d)
	}
	return joined(sums)
}

// joined adds four sums.
func joined(sums [4]float64) float64 { return (sums[0] + sums[1]) + (sums[2] + sums[3]) }
