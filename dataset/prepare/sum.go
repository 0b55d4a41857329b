package prepare

import (
	"math"
	"math/big"
)

// sum adds float32 numbers exactly: it is a whole number of 2^-149 in limbs of 32 bits, each of which an int64 holds. So it does not depend
// on the order of the numbers.
type sum struct {
	limbs [9]int64
	n     int64
}

// carryAfter is the number of additions after which limbs are carried: each is below 2^32, and their sum stays below 2^63.
const carryAfter = 1 << 30

// add adds a finite number.
func (s *sum) add(x float32) {
	bits := math.Float32bits(x)
	m, e := int64(bits&(1<<23-1)), bits>>23&0xff
	if e > 0 {
		m, e = m|1<<23, e-1
	}
	m <<= e % 32
	low, high := m&(1<<32-1), m>>32
	if bits>>31 != 0 {
		low, high = -low, -high
	}
	s.limbs[e/32] += low
	s.limbs[e/32+1] += high
	if s.n++; s.n%carryAfter == 0 {
		s.carry()
	}
}

// carry leaves what is below 2^32 in each limb but the last.
func (s *sum) carry() {
	for i := range len(s.limbs) - 1 {
		s.limbs[i+1] += s.limbs[i] >> 32
		s.limbs[i] &= 1<<32 - 1
	}
}

// join adds another sum.
func (s *sum) join(o *sum) {
	s.carry()
	o.carry()
	for i, limb := range o.limbs {
		s.limbs[i] += limb
	}
	s.n += o.n
}

// mean returns the float32 that is nearest to the mean, 0 of no numbers.
func (s *sum) mean() float32 {
	if s.n == 0 {
		return 0
	}
	total := new(big.Int)
	for i := len(s.limbs) - 1; i >= 0; i-- {
		total.Add(total.Lsh(total, 32), big.NewInt(s.limbs[i]))
	}
	unit := new(big.Int).Lsh(big.NewInt(s.n), 149)
	mean, _ := new(big.Rat).SetFrac(total, unit).Float32()
	return mean
}
