package estimate

import "ndls/internal/control"

// reference holds the speeds of the machine of the rates below: two cores of an AMD EPYC (Zen 3)
// with AVX2. Edges, and the rates that follow from it, are from an AMD EPYC (Zen 4). go run -C
// bench ./plan prints the speeds of its machine.
var reference = control.Speeds{Edges: 78e6, Flops: 75e9, Values: 15e6, Write: 0.42e9, Read: 0.82e9}

// A Rate is work a second and thread on the reference machine. On another machine it changes in
// proportion to the speed that bounds it.
type Rate struct {
	reference float64
	bound     func(control.Speeds) float64
}

func byEdges(s control.Speeds) float64  { return s.Edges }
func byFlops(s control.Speeds) float64  { return s.Flops }
func byValues(s control.Speeds) float64 { return s.Values }

// rate returns r for the machine that is planned for.
func (s *Sheet) rate(r Rate) float64 {
	if s.Resources.Speeds == (control.Speeds{}) {
		return r.reference
	}
	return r.reference * r.bound(s.Resources.Speeds) / r.bound(reference)
}

// Rates decide only seconds. All threads share the work, unless a line says that one thread does
// it. Each comment names the measurement to which the rate was fitted; `make plan` compares planned
// seconds with those of runs.
var (
	// PartitionedRows counts rows of the edge list through partition. PartitionedValues counts
	// values of feature tiles: read, ordered by node and written. Measured by go run -C bench
	// ./threads (partition) and go run -C bench ./plan -only coauthor_cs (partition).
	PartitionedRows   = Rate{4e6, byValues}
	PartitionedValues = Rate{60e6, byValues}
	// PartitionedIDs counts input ids that are not numbers. Ids of edges are looked up once; ids of
	// nodes are sorted, looked up and written.
	PartitionedIDs = Rate{1e6, byValues}

	// passedEdges counts directed edges with rows of 64 bytes that together have memoryBytes or
	// more. sharedEdges counts those with rows of cacheBytes, for which cores share a cache, and
	// cachedEdges those with rows of at most coreBytes. Measured by go run -C bench ./threads (lsi
	// and smooth, edges_streamed by kernel_seconds of report.json) and go run -C bench ./plan -only
	// coauthor_cs (smooth).
	passedEdges = Rate{107e6, byEdges}
	sharedEdges = Rate{130e6, byValues}
	cachedEdges = Rate{240e6, byValues}
	// passedRows counts rows of 64 bytes that a pass scales, adds to sums and stores. Measured by
	// go run -C bench ./plan -only cora (smooth).
	passedRows = Rate{70e6, byValues}
	// observedValues counts values of rows whose distances the LSI stage finds after a pass.
	// Measured by go run -C bench ./threads -profile (lsi).
	observedValues = Rate{1500e6, byValues}
	// combinedValues counts values that are added, or multiplied with each other, where polynomials make hops of nodes whose K is
	// unknown. Measured by go test -run '^$' -bench FewPasses ./lsi.
	combinedValues = Rate{4e9, byValues}
	// filledValues counts values of a column block that are made, or read from tiles, and scaled.
	// Measured by go run -C bench ./threads -profile (lsi and smooth).
	filledValues = Rate{150e6, byValues}
	// StoredValues counts values of output rows that become tiles, AssembledValues those that
	// become rows of an Arrow file. Measured by go run -C bench ./threads -profile (smooth and
	// predict).
	StoredValues    = Rate{70e6, byValues}
	AssembledValues = Rate{180e6, byValues}
	// readNodes counts rows of the node table, or of the K table, that a single thread reads
	// ([readsAtOnce]). Measured by go run -C bench ./threads -profile (lsi).
	readNodes = Rate{20e6, byValues}

	// TrainedFlops counts float32 operations of the products of training, PredictedFlops those of
	// prediction, SolvedFlops float64 operations of a ridge regression, SoftenedValues values of soft
	// labels, and CheckedValues values of rows that are compared with their checksums first. Measured
	// by sh bench/train/compare.sh, go run -C bench ./threads -profile (train and predict), and, for
	// SolvedFlops, go test ./train -bench Ridge.
	TrainedFlops   = Rate{45e9, byFlops}
	PredictedFlops = Rate{55e9, byFlops}
	SolvedFlops    = Rate{3e9, byFlops}
	SoftenedValues = Rate{250e6, byValues}
	CheckedValues  = Rate{1000e6, byValues}
)

const (
	// overlap is the time of a pass that reads edges from the disk while it computes, as a multiple
	// of the slower of the two. Measured by ndls bench stream.
	overlap = 1.25
	// coreBytes is the largest size of the rows of cachedEdges, cacheBytes the size of those of
	// sharedEdges, and memoryBytes the smallest size of those of passedEdges. From one to the next
	// the rate falls by the same factor with each doubling.
	coreBytes, cacheBytes, memoryBytes = 2 << 20, 64 << 20, 256 << 20

	// ReadBytes counts bytes that are read, scratchBytes bytes written to scratch files, and
	// CommittedBytes bytes of files that are hashed and made durable, by all threads together.
	// Measured by ndls bench stream, and by go run -C bench ./threads (the part that is equal for
	// one and two threads).
	ReadBytes      = 1.0e9
	scratchBytes   = 0.6e9
	CommittedBytes = 0.4e9
	// pieceSeconds is the time to commit a piece, such as the tiles of a panel, however few rows it
	// has. Measured by go run -C bench ./plan -only cora (smooth, which has 90 panels).
	pieceSeconds = 0.009
	// stageSeconds is the time to open and commit a stage, whatever the graph. Measured by go run
	// -C bench ./plan -only cora (evaluate).
	stageSeconds = 0.05
)

// besideReaders is the speed of a thread that reads a table beside others, relative to a single
// thread: two threads read 1.35 times as fast as one. Measured by go test ./shards -run xxx -bench
// VisitNodes.
const besideReaders = 1.35 / 2

// readsAtOnce returns the speed of so many threads that read a table, relative to one thread.
func readsAtOnce(threads int) float64 {
	if threads < 2 {
		return 1
	}
	return besideReaders * float64(threads)
}

// reads, scratches and commits return the bytes a second of the disk that is planned for.
func (s *Sheet) reads() float64 { return s.disk(ReadBytes, s.Resources.Speeds.Read, reference.Read) }

func (s *Sheet) scratches() float64 {
	return s.disk(scratchBytes, s.Resources.Speeds.Write, reference.Write)
}

func (s *Sheet) commits() float64 {
	return s.disk(CommittedBytes, s.Resources.Speeds.Write, reference.Write)
}

func (s *Sheet) disk(rate, measured, reference float64) float64 {
	if measured == 0 {
		return rate
	}
	return rate * measured / reference
}
