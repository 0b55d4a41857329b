// Package train trains multilayer perceptrons on smoothed rows, or makes ridge regressions of
// these, and predicts class probabilities with them. Memory is bounded. The bits do not depend on
// threads, memory budget or processor.
//
// # Model
//
// [Smoothed] reads the rows that a run has committed; a [Problem] adds the label and the split of
// each. [FitRuns] trains one [Model] for each run on the training rows, measures it on the
// validation rows after every epoch, and keeps the weights of the best epoch: by the measure of
// [Options], then by the lower loss, then the earlier one, or by the loss alone. [FitEach] gives
// the same models; by accuracy, it stops measuring an epoch when another one is certain to be
// better. [Predict], which alone reads test rows, streams the probabilities of all rows, and a
// [Tally] counts them by split.
//
// # Algorithm
//
// With H_0 the input rows, standardised with Options.Standardize, after their own dropout, D
// dropout and L layers,
//
//	H_l     = D(relu(N(H_{l-1} W_l + b_l)))  0 < l < L
//	log p   = log_softmax(H_{L-1} W_L + b_L)
//	loss    = −1/B Σ log p[label]           over the B rows of a step
//
// A column is standardised by its mean and deviation over the training rows, in float64. A
// deviation below 2^-24 of the mean counts as 0, and the column becomes 0. N is the identity, or
// LayerNorm: with the mean μ and the variance v of a row z of a hidden layer,
//
//	N(z)    = γ (z − μ)/√(v + 1e-5) + β      v divided by the number of values
//
// A problem of the task [Label] has several labels y of 0 and 1 in place of a class, and outputs z; one of
// [Regress] has numbers y, less their mean over the training rows and divided by their deviation. With c
// columns, of which a row adds those that are known,
//
//	loss    = 1/(Bc) Σ log(1 + e^z) − yz    p = 1/(1 + e^−z)    (Label)
//	loss    = 1/(Bc) Σ (z − y)²                                 (Regress)
//
// After the last epoch the weights and biases of the last layer get means and deviations of the numbers.
// Measures of these tasks need all validation rows.
//
// Weights and biases start uniform in ±1/√in, as in torch.nn.Linear, γ starts as 1 and β as 0. The
// optimiser is Adam with the constants of torch.optim.Adam; weight decay is added to all gradients.
// If a step takes all rows, they keep their stored order. Otherwise each chunk's training rows are
// cut into blocks. An epoch visits the blocks in random order, and shuffles the rows of every
// window of 16 MiB, at least eight blocks. The order is the same for streamed rows. The checksums
// of record batches are compared once, before the first epoch; Predict compares each as it reads
// it.
//
// FitEach validates the rows first that the weights predicted wrongly before, and stops when so
// many are wrong that the accuracy is below the best. It does so only if the largest weight and the
// largest input show that no logit overflows.
//
// # Ridge regression
//
// With Options.Ridge a model is linear, and its weights are a solution. With the training rows X
// and their one-hot labels Y, both less their means μ and ν,
//
//	W = (XᵀX + λI)⁻¹ XᵀY = Xᵀ (XXᵀ + λI)⁻¹ Y    intercept ν − μW
//
// so that the intercept, a column of ones, has no penalty. The smaller of both systems is solved,
// by the factors of Cholesky, in float64. λ is 100, 10, …, 1e-5 times the mean of its diagonal: the
// one that is best on the validation rows by Options.Measure, or by the loss with Options.Choose,
// of equals the largest. Scores are about 0 and 1, which a softmax would make almost even. So
// probabilities are the softmax of scores times 1, 2, 4, …, 64: the factor with the lowest loss on
// the validation rows, of equals the smallest. Weights and intercepts of the model contain that
// factor. Without validation rows λ is 0.1 of the mean and the factor 8. A run has neither seed nor
// epochs, and one worker makes it.
//
// # Pieces
//
// The b rows of a step are cut evenly into N pieces: N is the least power of two with b ≤ 192 N,
// but at most 64. With u = ⌈b/12⌉, piece i begins at row 12 ⌊u i/N⌋. The gradient of a piece adds
// its rows in order, from zero on. A binary tree adds pieces 2i and 2i+1, then these sums, up to
// the gradient of the step. The losses of rows are added by the same tree as float64, the losses of
// steps in their order. Validation rows are cut in the same way; the losses of the rows of a piece
// are added in order, then those of the pieces.
//
// # Several workers
//
// The g workers of a group ([Resources]) train one model together. Worker i takes pieces [⌊N i/g⌋,
// ⌊N (i+1)/g⌋) of a step, and adds their gradients up to nodes of the tree. Each worker adds up a
// g-th part of the values for all: it receives the others' nodes there, and sends back the sums.
// Each then makes the whole step of Adam by itself. Workers measure their own pieces of the
// validation rows and add the results. For macro F1 and ROC areas each worker measures all.
//
// With P weights and biases, n steps and e epochs a worker receives, and sends, n·8P(g-1)/g bytes
// in 2n(g-1) messages if g is a power of two, and up to 520·(g-1)·e bytes of measurements. For
// other g some workers have more nodes, and send more. A step adds two delays of the network.
//
// # Format
//
// A model is stored little-endian as
//
//	magic    8 bytes, "NDLSMLP" and a byte: '1', and 1 more with LayerNorm, and 2 more if inputs
//	         are standardised, and 4 more for labels or 8 more for numbers
//	count    uint32, layers + 1
//	dims     count × uint32: width of the input, then of each layer
//	sum      uint32, CRC-32C of all before
//	params   float32, for each layer in × out weights, row-major, then out biases; with
//	         LayerNorm, then out γ and out β for each layer but the last
//	columns  float32, if inputs are standardised: the mean of each column, then 1 / its
//	         deviation, 0 for a column that becomes 0
//	sha256   32 bytes, of all before
//
// # Memory
//
// In bytes, without labels and splits, which the caller holds; f is the width, h the width of the
// hidden ones among L layers, c the classes, P the parameters, w the largest of f, h and c,
// N the pieces of a step, and r = t min(288, 2^20/f) the rows that t threads take at a time:
//
//	rows in memory     4 (f+1) (train + valid rows) + 4P for each run, and for each
//	                   run at a time 20P + 4P (1 + log₂ N) + 4r (f + 3h(L-1) + 2c)
//	                   + 48tw + 8tc + 9 (valid rows)
//	rows streamed      4P for each run, and for each run at a time the same without
//	                   valid rows + 37 MiB
//	ridge regression   8 (s² + 3sc + f + fc + rf) + 4P beside rows in memory, where s is the
//	                   smaller of f and the training rows, and r these if they are fewer than
//	                   f, and else 4 MiB of rows, 16 to 256
//	prediction         4P for each model + 4P + 32 MiB + 16 KiB c for each result
//	                   + 4r (h(L-1) + c) + 48tw + 8tc
//	ROC areas          4 for each validation row and class or label, of two classes for each row
//	Regress            16 for each number
//
// A worker of a group holds its own validation rows, without the 9 for each; gradients of 1 + log₂
// N/g nodes, up to twice as many if g is no power of two, and the whole gradient, 4P + 8 each; and
// 4P (g-1)/g, up to log₂ N times that, for the nodes of others.
//
// Packed matrices are rounded up to whole tiles, at most 32 columns each. Loading rows into memory
// needs 32 MiB more. Reading ahead takes 16 MiB a read, if the budget has room. A prediction has
// two results of 4032 rows, or up to eight within 32 MiB. With LayerNorm, training takes 4r
// (2h+1)(L-1) more for each run at a time; with standardised inputs a prediction takes 4rf more,
// and each model 8f. With less room, rows are streamed, and fewer threads train fewer runs at a
// time. The heap grows only with the number of chunks, epochs and runs.
//
// # Determinism
//
// Every random number is a hash of seed, run, purpose and position of the sample in its epoch.
// Package train/dense adds products in ascending order of the inner index, each rounded once. Means
// and variances of LayerNorm are float64, four sums of every fourth value. The sum of a row's
// exponentials adds every eighth value, then the eight sums. exp, log and cos come from package
// internal/elementary. A value of a ridge regression adds its terms in order of rows or of columns,
// each product and sum rounded to float64. No other operation here can be fused. The sample order
// depends on the chunks of the source, which follow from the width and the intervals. Means and
// deviations over runs come from gonum's stat, and may differ in the last place between builds with
// and without assembly.
//
// # Threads
//
// The threads of a run share the rows of a microbatch, then the parts of the gradient. A step with
// fewer than 288 rows a thread uses fewer threads; the others train other runs. An idle thread
// looks for work for a millisecond before it sleeps, if there is a core for each.
// Before the first step they share the columns of rows, or rows of numbers, to measure means and
// deviations.
//
// # Not supported
//
// Continuing an interrupted run of training, several models at a time by the same group, shares of
// training rows in place of all for each worker, and ridge regressions of labels or numbers.
package train
