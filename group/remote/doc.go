// Package remote lets several workers take one column block from hop to hop together,
// each its own range of rows, and guarantees that every row gets the bits that one
// worker with all rows would give it.
//
// # Model
//
// A [Member] is the group.Group of one of W workers. Worker w has rows [Borders[w],
// Borders[w+1]), whole strips. All workers make the same calls in the same order, so
// that what two workers expose under the same number is of the same hop. A [Registry]
// is the blocks.Source of a process: it passes requests on to the present member.
//
// A worker exposes its rows of hop k while it computes hop k+1. When it has its rows of
// hop k+1 it gathers the conservation sums of all workers. A worker that has given its
// sums of hop k+1 has computed all of its rows of it, and asks for no row of hop k
// again; so when the all-gather returns the worker withdraws its rows of hop k. Rows of
// hop k+1 are not exposed, and not overwritten, before that. So two generations of rows
// are enough, and workers wait for each other only in that barrier. A request that
// comes too late, from a worker that the others have given up, gets ErrPast. Rows are
// copied under a lock, so that a request never gets rows of another hop.
//
// The same argument limits values to two generations: a worker that gives its values
// of exchange s+1 has read those of all workers of exchange s, so that no worker
// reads those of s−1.
//
// A worker that fails closes its member with the reason. Other workers that wait for it
// fail with blocks.ErrRetry, and close theirs. So do workers that lose a connection. A
// group that failed begins again, under another name, from its last checkpoint.
//
// # Algorithm
//
// Each worker reads the rows of all other workers once for each group of strips that it
// can accumulate. It reads them in ascending order, because every sum runs in ascending
// order of source, and it fetches the next window while it adds the present one. A window
// that spans several owners is fetched in as many parts, side by side. There are three ways:
//
//	relayed   the workers are a ring. Each fetches rows from the worker before it, which has
//	          them in the window that it fetched itself, piece by piece as they arrive there. It
//	          overwrites a window once the worker after it has read what it needs of it.
//	directly  each fetches rows from their owner: where not all workers read the rows of others
//	          once, and have their own in memory.
//	listed    as directly, but the owner sends those rows alone that edges into the rows of the
//	          other worker come from, where the workers have told each other which these are
//	          ([Member.Reads]). Rows of such requests are numbered without the others. If all workers have
//	          memory for the rows of the others, each asks the worker after it first, and goes round.
//
// Before the first hop of a column block the workers agree on one of them (package spmv): listed, if they have told
// each other what they read, and all have the memory to go round; else relayed, if all can.
//
// Where rows are relayed all workers send all the time, and receive all the time but for what is their own. Where each asks
// another one first, too. Where all ask the first worker first, then the second, each owner in turn answers W−1 requests at a
// time. On the wire a hop takes, of n rows of b columns of e bytes,
//
//	        n·b·e / B    relayed
//	(W−1)/W · s·n·b·e / B    listed, with a share s of rows that are read
//	(W−1)   · n·b·e / B    directly, if a window is small beside a range
//
// seconds at B bytes a second for each worker. Computing takes n·b/W columns
// of the edges of n/W rows meanwhile; how much of the wire it hides says group.Way.
//
// Workers of a ring do not wait for each other in a circle: each reads in ascending order, and
// passes on no row to its owner. One that waits for the worker after it asks that one for
// values from time to time, and so hears if it has failed.
//
// Bytes of rows on the wire, in a hop, for n_w rows of worker w accumulated in g_w
// groups of strips:
//
//	Σ_w g_w · (n − n_w) · b·e
//
// fewer where rows are listed. g_w is 1 for float32 rows in memory, whose sums are taken in the rows
// of the next hop. Messages around the rows add up to a twentieth, a request about 1 KiB. An
// exchange of values takes W·(W−1) requests of a few hundred bytes; there are two or
// three in a hop. Stationary rows take twice 8·b bytes for each component and worker,
// once.
//
// Values that are swapped ([Member.Exchange]) go from each worker to each other one in one stream, swap after swap, which takes
// a request for each 2^20 values. A swap takes one delay, and W·(W−1) messages, each of at least some 400 bytes.
//
// # Memory
//
// n/8 bytes for the list of rows that a worker reads, and W·n_w/8 for those of others, where there are
// lists. 2^17 bytes for each request that is being answered, of which each other worker has
// at most one for each window, and what package blocks takes; a few hundred bytes for
// each worker; nothing that grows with n. A worker takes in all, for n_w rows of b
// columns of e bytes, windows of w rows, a strips accumulated at a time, t threads and
// c components:
//
//	4·n_w         degrees, and as much again for components
//	8·c·(1 + b)   volumes and stationary rows
//	2·n_w·b·e     rows of two hops, unless they are on disk
//	2·w·b·e       windows, or more where there are two workers, or lists
//	edges         of its rows, where they take at most a quarter of what is free (package stage)
//	a·2^15·b·4    accumulators, of float16 rows and of rows on disk
//	t·2^15·b·4    of float16 rows; t·2^15·b·e of rows on disk
//
// and what packages smooth and lsi say for n_w rows in place of n.
//
// # Determinism
//
// Sums over workers are taken in the order of the workers; [Member.OrderedSum] adds
// value after value in ascending order of row, whatever worker has the row.
//
// # Not supported
//
// Relaying rows of which some alone are sent. Another number of workers, or other borders,
// within an attempt. Asking again for rows that did not arrive: the attempt fails.
package remote
