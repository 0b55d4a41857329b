// Package train fits multilayer perceptrons to smoothed rows and predicts class
// probabilities with them, in bounded memory and, unless built with the tag
// openblas, with the same bits whatever the threads, the memory budget and the
// processor.
//
// # Model
//
// [Smoothed] gives the rows a run has committed, of all nodes or of some, float32
// or float16; a [Problem] adds the label and the split of each. [FitRuns] trains one [Model] for each run on the training
// rows, measures it on the validation rows after every epoch and keeps the
// weights of the best one. [Predict] streams the probabilities of all rows, and
// a [Tally] counts them per split. Test rows are read by Predict only.
//
// # Algorithm
//
// With H_0 the input rows, D dropout and L layers,
//
//	H_l     = D(relu(H_{l-1} W_l + b_l))    0 < l < L
//	log p   = log_softmax(H_{L-1} W_L + b_L)
//	loss    = −1/B Σ log p[label]           over the B rows of a step
//
// where the input goes through its own dropout first. Weights and biases start
// uniform in ±1/√in, as those of torch.nn.Linear. Adam with the constants of
// torch.optim.Adam follows, weight decay added to the gradient of weights and
// biases. An epoch takes the rows in stored order if a step takes all of them.
// Otherwise each chunk's training rows are cut into blocks; an epoch visits the
// blocks in random order and shuffles the rows of every window of 16 MiB, eight
// blocks at least, among themselves. That order is the same whether the rows are
// in memory or read again in each epoch. Record batches with rows to train or
// validate on are checked against their checksums once, before the first epoch;
// what streams after that reads blocks of them, unchecked, a window ahead of the
// one in use. Predictions are made from record batches that are checked, of
// which the next is read meanwhile.
//
// # Format
//
// A model is stored little-endian as
//
//	magic    8 bytes, "NDLSMLP1", the last being the version
//	count    uint32, layers + 1
//	dims     count × uint32: width of the input, then of each layer
//	sum      uint32, CRC-32C of all before
//	params   float32, for each layer in × out weights, row-major, then out biases
//	sha256   32 bytes, of all before
//
// # Memory
//
// With f the width, L layers of hidden width h, c classes and P weights and
// biases, in bytes and beside labels and splits, which the caller holds:
//
//	training, rows in memory    4 (f+1) (train + valid rows) + 4P for each run
//	                            + 16P + 1 KiB (min(f, 4096) + h (L+2) + c) for each run at a time
//	training, rows streamed     4P for each run
//	                            + the same + 37 MiB for each run at a time
//	prediction                  4P for each model + 32 MiB + 32 KiB c
//	                            + 1 KiB (h L + c) for each thread
//
// The 32 MiB of two record batches are needed while rows are brought into memory,
// too. Reading ahead is given up where the budget has no room for it: 16 MiB less
// each. Rows are kept in memory if the budget has room for them and for one run;
// fewer runs are trained at a time if it has no room for more.
// The heap holds what grows with the number of chunks, epochs and runs only.
//
// # Determinism
//
// Every random number is a hash of seed, run, purpose and position. Products
// are sums in ascending order of the inner index: gonum's axpy path, which
// multiplies and adds element by element in its SSE assembly; gonum never sees
// a transposed right-hand side, whose dot products are summed in another order,
// nor a product large enough for goroutines of its own. Builds without that
// assembly use a twin in Go. exp, log and cos are this package's own, since
// those of package math differ between processors with and without fused
// multiply-add; no product here can be fused. The sample order depends on the
// chunks of the source, which are a function of the width and of the intervals.
// Means and deviations over runs come from gonum's stat and may differ in the
// last place between builds with and without assembly.
//
// The build tag openblas takes the products from OpenBLAS instead, through cgo
// and gonum's netlib; it needs cgo and libopenblas, and is several times as fast.
// OpenBLAS sums in an order of its own, which depends on the processor and on how
// rows are grouped, so that the bits of a model are another build's only up to
// rounding, and differ between processors and between rows in memory and rows
// streamed; probabilities may differ in the last places with the threads of
// Predict. Random numbers, sample order and masks are the same. The
// program sets OpenBLAS to one thread when it starts, whatever
// OPENBLAS_NUM_THREADS says: a run is one thread, and runs are side by side. What
// OpenBLAS allocates for its panels is outside the budget.
//
// # Not supported
//
// Training one model on several threads, continuing an interrupted run of
// training, and losses over several labels a row.
package train
