// Package elementary has the exponential, the logarithm, powers and the cosine with the same
// bits on every processor.
//
// # Model
//
// Package math has assembly for Exp on amd64, arm64, loong64 and s390x, for Log on amd64 and
// s390x, for Exp2 on arm64 and loong64, and for Pow and the others on s390x. That of Exp on amd64
// is another one where the processor has fused multiply-add. Elsewhere the compiler fuses products
// and sums of the Go code as the processor allows. Their results differ in the last places. The
// functions here are series whose operations are each rounded once: a sum of a product is either
// fused on every processor ([math.FMA]) or on none.
//
// What decides bytes that are committed takes these functions. [math.Sqrt], [math.Floor],
// [math.Frexp], [math.Ldexp] and [math.FMA] are exact, or rounded once, wherever they run.
//
// # Determinism
//
// A result depends on the arguments alone.
//
// # Not supported
//
// Results near the limits of the range: Exp gives 0 below e^-708.
package elementary
