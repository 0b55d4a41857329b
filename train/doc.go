// Package train fits multilayer perceptrons to smoothed rows and predicts class
// probabilities with them, in bounded memory and with the same bits whatever the
// threads, the memory budget and the processor.
//
// # Model
//
// [Smoothed] gives the rows a run has committed, of all nodes or of some, float32 or float16; a
// [Problem] adds the label and the split of each. [FitRuns] trains one [Model] for each run on the
// training rows, measures it on the validation rows after every epoch and keeps the weights of the
// best one: by the measure of [Options], of equals those with the lower loss, then the earlier ones. [FitEach] gives the same
// models and, where accuracy decides, ends the measurement of an epoch as soon as it is clear that another one was better. [Predict] streams the probabilities of all rows, and a [Tally] counts them per split.
// Test rows are read by Predict only.
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
// FitEach looks at rows 24 for each thread at a time, those first about which the weights were wrong, or
// nearly so, when they were seen last. It ends when so many are wrong that the accuracy is below the best; otherwise it measures all rows, in order, for their loss. That
// is exact as long as no logit can overflow, which it concludes from the largest weight and the largest input; where it
// cannot conclude that, it measures all rows.
//
// # Pieces
//
// The b rows of a step are cut into N pieces, evenly: N is the least power of two with b ≤ 192 N, but 64 at most. With u = ⌈b/12⌉, piece
// i begins at row 12 ⌊u i/N⌋. So a step of 4,096 rows has 32 pieces of 120 or 132 rows, and one of 192 rows or fewer is one
// piece. The gradient of a piece receives its rows in their order, from zero on. Those of pieces 2i and 2i+1 are added,
// then the sums of four, and so on: a binary tree, whose root is the gradient of the step. The losses of
// the rows are added in the same way, as float64, and those of the steps in their order. Validation rows are cut into pieces
// as a step is: the losses of the rows of a piece are added in their order, then those of the pieces in theirs.
//
// # Several workers
//
// The workers of a group ([Resources]) train the same model together. Of g workers, worker i takes pieces [⌊N i/g⌋, ⌊N (i+1)/g⌋) of a
// step forward and back, and adds up their gradients as far as they are nodes of the tree: to one node where g is a power of
// two, and N/g ≥ 1. Each worker adds up the g-th part of the values for all: the others send it what their nodes have there (the first swap), it
// adds these by the tree, and sends the sums to all (the second). Each then takes the step of Adam by itself, with all weights. The
// loss follows the gradient. Of the validation rows each worker measures its pieces, and all add up what
// they have found after each epoch; no measurement ends early. Macro F1 and areas under ROC curves need all validation rows in one
// place: where these decide, each worker measures all of them.
//
// With P weights and biases, n steps and e epochs a worker gets, and sends, n·8P(g-1)/g bytes where g is a power of two, in 2n(g-1)
// messages, and up to 520·(g-1)·e bytes of what was measured. Where g is none, some workers have more nodes, and send as much more. A
// step takes two delays of the network in addition to computing, whatever g is.
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
// With f the width, L layers of hidden width h, c classes, P weights and biases,
// w the largest of f, h and c, N pieces a step, and r = t min(288, 2^20/f) the rows that t threads
// take at a time, in bytes and beside labels and splits, which the caller holds:
//
//	training, rows in memory    4 (f+1) (train + valid rows) + 4P for each run
//	                            + 20P + 4P (1 + log₂ N) + 4r (f + 3h(L-1) + 2c) + 48tw + 8tc + 9 (valid rows) for each run at a time
//	training, rows streamed     4P for each run
//	                            + the same, without valid rows, + 37 MiB for each run at a time
//	prediction                  4P for each model + 4P + 32 MiB + 16 KiB c for each result
//	                            + 4r (h(L-1) + c) + 48tw + 8tc
//
// A worker that trains with others has its validation rows alone, without the 9 for each of them. It has
// gradients of 1 + log₂ N/g nodes in place of 1 + log₂ N, or up to twice as many where g is no power of two, and the whole one, each of 4P + 8 bytes, and a g-th part of the nodes of
// all others: 4P (g-1)/g, or up to log₂ N times as much.
// Where areas under ROC curves decide, a run has 4 bytes more for each validation row and class, of two classes for each row.
// Packed matrices are rounded up to whole tiles, at most 32 columns each.
// The 32 MiB of two record batches are needed while rows are brought into memory,
// too. Reading ahead is given up where the budget has no room for it: 16 MiB less
// each. A prediction has two results of 4032 rows, and up to eight where the budget has
// room for them and they take 32 MiB at most. Rows are kept in memory if the budget has room for them and for one run;
// fewer runs are trained at a time, and by fewer threads, if it has no room for
// more.
// The heap holds what grows with the number of chunks, epochs and runs only.
//
// # Determinism
//
// Every random number is a hash of seed, run, purpose and position: that of the sample in its epoch, whatever worker has it. Products
// are those of package train/dense, which adds them in ascending order of the
// inner index, each rounded once, on any processor. A gradient is the sum of those of pieces, by a tree that depends on the number of rows of
// the step alone, whatever worker or thread takes them. The sum of a row's exponentials adds every eighth
// value, then the eight sums. exp, log and cos are those of package
// internal/elementary; no other operation here can be fused. The sample order depends on
// the chunks of the source, which are a function of the width and of the
// intervals. Means and deviations over runs come from gonum's stat and may differ
// in the last place between builds with and without assembly.
//
// # Threads
//
// All threads of a run take the rows of a microbatch, whole pieces of 288 rows at most for each of them, or a part of one, through the
// network and back, 24 rows at a time. Then they divide the gradient among them by its
// inputs and columns, and take the step with each part of it, and divide the layers to pack the weights. A
// step whose rows are fewer than 288 for each thread has fewer threads; the others train
// other runs at the same time. One thread alone puts the rows of an epoch into order, adds
// up the losses of the rows, and compares epochs; where rows are streamed, others read
// ahead of it. Where there is a core for each, threads that have nothing to do look for work for a millisecond before they
// sleep: a step has several sections of a few milliseconds, and on a virtual machine a core that has been halted takes up to
// 0.4 ms to wake.
//
// # Not supported
//
// Continuing an interrupted run of training, several models at a time by the same group, shares of training rows in place of
// all for each worker, and losses over several labels a row.
package train
