package train

import (
	"ndls/shards"
	"ndls/train/dense"
)

// Shape holds what decides the memory of training and predicting.
type Shape struct {
	// Rows is the number of smoothed rows. Train and Valid are the numbers of them in these splits.
	Rows, Train, Valid int64
	Width, Classes     int
	// Workers is the number of workers that train a model together; 0 is 1.
	Workers int
}

func (s Shape) form(o Options) form { return formOf(s.Width, s.Classes, o) }

// formOf returns the form of a model for rows of some values.
func formOf(width, classes int, o Options) form {
	dims := []int{width}
	if o.Ridge {
		return form{append(dims, classes), false, o.Standardize, o.Task}
	}
	for range o.Layers - 1 {
		dims = append(dims, o.Hidden)
	}
	return form{append(dims, classes), o.LayerNorm && o.Layers > 1, o.Standardize, o.Task}
}

// expected is a source of full record batches, from which nothing is read.
type expected struct {
	Source
	Shape
}

func (e expected) Width() int     { return e.Shape.Width }
func (e expected) NumChunks() int { return 1 }
func (e expected) Chunk(int) (_, rows int64) {
	return 0, min(e.Rows, int64(shards.BatchRows(e.Shape.Width)))
}

// ChunkBytes returns the memory for reading so many rows chunk by chunk, with one chunk read ahead.
func ChunkBytes(rows int64, width int) int64 {
	return readAhead * chunkBufferBytes(expected{Shape: Shape{Rows: rows, Width: width}})
}

// fitting returns what the runs of a call would share.
func (s Shape) fitting(o Options) *fitting {
	src := expected{Shape: s}
	f := &fitting{
		problem: Problem{Source: src, Classes: s.Classes}, options: o, form: s.form(o), kernel: someKernel(), workers: max(s.Workers, 1),
		train: &rowSet{src: src, count: s.Train}, shuffle: o.BatchSize > 0 && int64(o.BatchSize) < s.Train,
	}
	f.validation = s.Valid
	f.valid = &rowSet{src: src, count: s.Valid}
	if !o.needsAll() {
		f.valid.count = cutStep(s.Valid).most(f.workers)
	}
	return f
}

// PlanFit returns the memory that [FitRuns] uses when free bytes are available, the least it needs,
// and whether it reads the rows again in each epoch.
func PlanFit(s Shape, o Options, threads int, free int64) (peak, least int64, streamed bool) {
	src, f := expected{Shape: s}, s.fitting(o)
	models := int64(o.Runs) * (4*f.numValues() + 4096)
	chunk := chunkBufferBytes(src)
	ahead := windowBytesOf(min(max(s.Train, s.Valid), windowRows(s.Width)), s.Width) + 4*readValues(s.Width) + 4096
	least = models + max(chunk, f.runBytes(true, 1)-ahead)

	need := f.train.bytes() + f.valid.bytes() + 4*4096
	streamed = free-models < need+max(chunk, f.runBytes(false, 1))
	if streamed {
		need = 0
	}
	left := free - models - need
	side, c := divideThreads(f.beside(o.Runs), max(threads, 1), f.threadedRows(), threadRows(s.Width), func(side int, c pool) bool {
		return int64(side)*f.runBytes(streamed, c) <= left
	})
	scanned := min(readAhead, max(left/chunk, 1)) * chunk
	return models + need + max(scanned, int64(side)*f.runBytes(streamed, c)), least, streamed
}

// PlanPredict returns the memory that [Predict] with so many models uses when free bytes are
// available, the models included, and the least it needs.
func PlanPredict(s Shape, o Options, models, threads int, free int64) (peak, least int64) {
	f, c := s.form(o), pool(max(threads, 1))
	result := predictedBytes(s.Classes)
	fixed := int64(models)*(4*f.numValues()+4096) + readAhead*result +
		networkBytes(f, c, microbatchRows(c, s.Width), someKernel(), false)
	chunk := chunkBufferBytes(expected{Shape: s})
	peak = fixed + min(readAhead, max((free-fixed)/chunk, 1))*chunk
	peak += max(min(mostPredicted(s.Classes)-readAhead, (free-peak)/result), 0) * result
	return peak, fixed + chunk
}

// SideBySide returns the number of models that so many threads train at the same time, each in
// steps of so many rows.
func SideBySide(stepRows int64, width, threads int) int {
	side, _ := divideThreads(threads, threads, stepRows, threadRows(width), func(int, pool) bool { return true })
	return side
}

// PredictFlops returns the number of additions and multiplications of the products of a prediction
// of all rows.
func PredictFlops(s Shape, o Options) float64 {
	return float64(s.Rows) * forwardFlops(s.form(o).dims)
}

// validated is the assumed share of the validation rows that an epoch reads, which stops when it
// cannot be the best. Measured with ten models of Cora and of Coauthor CS.
const validated = 0.5

// EpochFlops is [PredictFlops] of an epoch, validation included: each layer of a training row
// computes its output, the gradient of its weights and, except for the first layer, the gradient of
// its input. For several workers it counts the worker with most rows.
func EpochFlops(s Shape, o Options) float64 {
	f := s.fitting(o)
	first := 2 * float64(f.dims[0]) * float64(f.dims[1])
	share := 1.0 // of a step
	if s.Train > 0 {
		share = float64(f.ownRows()) / float64(f.stepRows())
	}
	looked := validated
	if o.needsLoss() {
		looked = 1
	}
	return float64(s.Train)*share*(3*forwardFlops(f.dims)-first) + looked*float64(f.valid.count)*forwardFlops(f.dims)
}

// RidgeFlops returns the number of float64 operations of a ridge regression, without measuring it.
func RidgeFlops(s Shape, o Options) float64 {
	f := s.fitting(o)
	size, _ := f.systemSize()
	n, width, classes := float64(size), float64(s.Width), float64(s.Classes)
	each := float64(n*n*n/3) + float64(4*n*n*classes) + float64(2*n*width)
	return float64(float64(s.Train)*width*n) + float64(Penalties*each)
}

// forwardFlops returns the operations of a row.
func forwardFlops(dims []int) (flops float64) {
	for l, n := range dims[1:] {
		flops += float64(2 * float64(dims[l]) * float64(n))
	}
	return flops
}

// Swapped returns the number of steps of an epoch, and the largest number of bytes that one of
// several workers receives in a step.
func Swapped(s Shape, o Options) (steps, bytes int64) {
	f := s.fitting(o)
	if s.Train == 0 {
		return 0, 0
	}
	batch := f.stepRows()
	return (s.Train + batch - 1) / batch, 4 * (f.received() + f.numParams())
}

// NumWeights returns the number of values of a model.
func NumWeights(s Shape, o Options) int64 { return s.form(o).numValues() }

// someKernel returns the fastest kernel; the tiles of others need less memory.
func someKernel() *dense.Kernel {
	k, err := dense.Select("")
	if err != nil {
		panic(err) // every build has one
	}
	return k
}
