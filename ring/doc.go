// Package ring lets several workers take one column block from hop to hop together,
// each its own range of rows, and guarantees that every row gets the bits that one
// machine would give it.
//
// # Model
//
// A [Ring] is a worker's place among W workers; worker w has rows [Borders[w],
// Borders[w+1]), whole strips. It is spmv.Peers to the pass and blocks.Source to the
// server of its process. All workers make the same calls in the same order, so that
// the n-th offer of one is that of the same hop as the n-th of another.
//
// Rows of hop k are offered while hop k+1 is computed, and no longer. A worker that
// has its rows of hop k+1 gathers the conservation sums of all, and withdraws its
// rows of hop k once it has them: whoever has given its sums of hop k+1 has computed
// all of its rows of it, and asks for no row of hop k again. Rows of hop k+1 are not
// offered, and not overwritten, before that: two generations are enough, and nothing
// waits on anything but that barrier. A request that comes too late, of a worker of
// which the others know nothing any more, gets ErrPast; what is offered is copied
// under a lock, so that it never sees rows of another hop.
//
// The same argument keeps two generations of values: who gives those of exchange s+1
// has those of all of exchange s, so that nobody reads those of s−1.
//
// Who fails closes its ring with the reason: others that wait for it fail with
// blocks.ErrRetry, and close theirs. So do those that lose a connection. A gang that
// failed begins again under another name from its last checkpoint.
//
// # Algorithm
//
// Each worker reads the rows of all others once for each group of strips that it can
// accumulate, in ascending order, because every sum runs in ascending order of source,
// and while one window is added the next is on its way. So all ask the first worker
// first, then the second: the owners are asked in waves, W−1 requests at a time. A
// window that reaches over several owners is fetched from them side by side. On the
// wire a hop takes between
//
//	(W−1)/W · n·b·e / B    where a window has all rows, or computing hides the waves
//	(W−1)   · n·b·e / B    where a window is small beside a range
//
// seconds at B bytes a second for each worker: up to W times the time that a relay
// from worker to worker would take, for the same bytes. Computing takes n·b/W columns
// of the edges of n/W rows meanwhile, and hides the wire where that is longer.
//
// Bytes of rows on the wire, in a hop, for n_w rows of worker w accumulated in g_w
// groups:
//
//	Σ_w g_w · (n − n_w) · b·e
//
// g_w is 1 for float32 rows in memory, where sums are taken in the rows of the next
// hop. Messages around the rows add up to a twentieth, a request about 1 KiB; an
// exchange takes W·(W−1) requests of a few hundred bytes, of which there are
// two or three in a hop, and stationary rows twice 8·b bytes for each component and
// worker, once.
//
// # Memory
//
// 2^17 bytes for each request that is being answered, of which each other worker has
// at most one for each window, and what package blocks takes; a few hundred bytes for
// each worker; nothing that grows with n. What a worker takes in all, for n_w rows of
// b columns of e bytes, windows of w rows, a strips accumulated at a time, t threads
// and c components:
//
//	4·n_w         degrees, and as much again for components
//	8·c·(1 + b)   volumes and stationary rows
//	2·n_w·b·e     rows of two hops, unless they are on disk
//	2·w·b·e       windows
//	a·2^15·b·4    accumulators, of float16 rows and of rows on disk
//	t·2^15·b·4    of float16 rows; t·2^15·b·e of rows on disk
//
// and what packages smooth and lsi say for n_w rows in place of n.
//
// # Determinism
//
// Sums over workers are taken in the order of the workers; [Ring.Chain] adds value
// after value in ascending order of row, whoever has it.
//
// # Not supported
//
// Relaying rows from worker to worker. Another number of workers, or other borders,
// within an attempt. Asking again for rows that did not arrive: the attempt fails.
package ring
