package stage

import "testing"

// FewPassesForK lets polynomials make hops from which K is found, until the test ends.
func FewPassesForK(t testing.TB) {
	fewPassesForK = true
	t.Cleanup(func() { fewPassesForK = false })
}
