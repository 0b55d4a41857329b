package estimate

// Rates of work a second and thread, on the machine of bench/papers100m/RESULTS.md: they
// serve seconds alone. All threads share the work, unless a line says that one thread does
// it. Behind each rate stands what it was fitted to; `make plan` sets the seconds that follow
// from all of them beside those that runs take.
const (
	// PartitionedRows is rows of the edge list through partition, PartitionedValues values of
	// feature tiles: read, put in the order of the nodes and written.
	// go run ./bench/threads: partition; go run ./bench/plan -only coauthor_cs: partition.
	PartitionedRows   = 3.6e6
	PartitionedValues = 60e6
	// PartitionedIDs is input ids that are not numbers: those of edges are looked up once, those
	// of nodes are sorted, looked up and written.
	PartitionedIDs = 1e6

	// passedEdges is directed edges past rows of 64 bytes, cachedEdges those past rows that
	// together take cacheBytes at most.
	// go run ./bench/threads: lsi and smooth, edges_streamed by kernel_seconds of report.json;
	// go run ./bench/plan -only coauthor_cs: smooth.
	passedEdges = 110e6
	cachedEdges = 180e6
	cacheBytes  = 16 << 20
	// passedRows is rows of 64 bytes that a pass scales, adds to sums and stores.
	// go run ./bench/plan -only cora: smooth.
	passedRows = 100e6
	// observedValues is values of rows whose distances the LSI stage finds after a pass.
	// go run ./bench/threads -profile: lsi.
	observedValues = 1500e6
	// overlap is how many times the seconds of the slower of the two a pass takes that reads
	// edges from the disk while it computes.
	// ndls bench stream.
	overlap = 1.25

	// filledValues is values of a column block that are made, or read from tiles, and scaled.
	// go run ./bench/threads -profile: lsi and smooth.
	filledValues = 150e6
	// StoredValues is values of output rows that become tiles, AssembledValues those that
	// become rows of an Arrow file.
	// go run ./bench/threads -profile: smooth and predict.
	StoredValues    = 70e6
	AssembledValues = 120e6
	// readNodes is rows of the node table, or of the K table, that one thread reads.
	// go run ./bench/threads -profile: lsi.
	readNodes = 20e6

	// TrainedFlops is float32 operations of the products of training, PredictedFlops those of
	// prediction, SoftenedValues values of soft labels, and CheckedValues values of rows that
	// are compared with their checksums before.
	// sh bench/train/compare.sh; go run ./bench/threads -profile: train and predict.
	TrainedFlops   = 32e9
	PredictedFlops = 50e9
	SoftenedValues = 250e6
	CheckedValues  = 1000e6

	// ReadBytes is bytes that are read, scratchBytes bytes that are written to scratch files,
	// and CommittedBytes those of files that are hashed and made durable, of all threads
	// together.
	// ndls bench stream; go run ./bench/threads: what one and two threads take alike.
	ReadBytes      = 1.1e9
	scratchBytes   = 1.6e9
	CommittedBytes = 0.4e9
	// stageSeconds is what opening and committing take, whatever the graph.
	// go run ./bench/plan -only cora: evaluate.
	stageSeconds = 0.05
)
