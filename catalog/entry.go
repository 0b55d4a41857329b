package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// Types of the values of a tile.
const (
	Float32 = "float32"
	Float16 = "float16"
)

// Kinds of catalogued files.
const (
	KindSummary          = "summary"             // graph/summary.json
	KindEdges            = "edges"               // edge shard
	KindHops             = "hops"                // hop stream
	KindReversed         = "reversed-edges"      // edge shard of a graph with directions, every edge turned round
	KindReversedHops     = "reversed-hops"       // hop stream of such a shard
	KindIDs              = "ids"                 // input ids in order of their numbers
	KindColumns          = "columns"             // how columns of the dataset become features
	KindNodes            = "nodes"               // node table
	KindSplits           = "splits"              // where nodes belong in a split after the first
	KindFeatures         = "features"            // tile of input features
	KindUnfilled         = "unfilled-features"   // tile of input features in which missing numbers are the means of their columns
	KindNeighbours       = "neighbour-sums"      // tile of what neighbours have of columns with missing numbers
	KindAnswers          = "answers"             // tile of labels or numbers to learn
	KindLSI              = "lsi"                 // K table
	KindLSISquares       = "lsi-squares"         // squared distances of nodes, of a panel of the probe
	KindLSIRows          = "lsi-rows"            // rows of a panel of the probe
	KindLSIFound         = "lsi-found"           // K of some nodes, as far as it is known
	KindLSISampled       = "lsi-sampled"         // distances of sampled nodes among these
	KindLSISample        = "lsi-sample"          // distances of some nodes
	KindLabelLSI         = "label-lsi"           // K table for the epsilon of label smoothing
	KindSmoothedTile     = "smoothed-tile"       // tile of smoothed features
	KindSmoothedPart     = "smoothed-part"       // some rows of such a tile
	KindSmoothed         = "smoothed"            // smoothed features as rows
	KindKeptHops         = "kept-hops"           // hops of features as rows
	KindModel            = "model"               // weights
	KindTally            = "tally"               // right predictions of a model, counted
	KindScores           = "scores"              // probabilities of nodes that are evaluated
	KindSoftLabels       = "soft_labels"         // soft labels as rows
	KindGivenSoftTile    = "given-label-tile"    // tile of another model's soft labels
	KindErrorTile        = "error-tile"          // tile of errors of soft labels, propagated
	KindCorrectedTile    = "corrected-tile"      // tile of corrected soft labels
	KindCorrection       = "correction"          // what soft labels of an interval were corrected by
	KindLabelDepth       = "label-depth"         // how many hops labels are smoothed over
	KindDepthRows        = "label-depth-rows"    // classes of validation nodes at each depth
	KindDepthPart        = "label-depth-part"    // those of some validation nodes
	KindLabelTally       = "label-tally"         // how many smoothed labels of an interval are right
	KindSmoothedScores   = "smoothed-scores"     // the same after label smoothing, of an interval
	KindSmoothedSoftTile = "smoothed-label-tile" // tile of smoothed soft labels
	KindSmoothedSoftPart = "smoothed-label-part" // some rows of such a tile
	KindBestClasses      = "best-classes"        // best class among some panels of smoothed soft labels
	KindWritten          = "written"             // which predictions are written
	KindBreakdown        = "breakdown"           // predictions of an interval, counted by degree, K and class
	KindPredictions      = "predictions"         // labels and probabilities as rows
	KindCheckpoint       = "checkpoint"          // state of a task that is under way
	KindRun              = "run"                 // sorted numbers on their way between tasks of a partition
)

// NotApplicable is the value of the fields of an Entry that do not apply to a file, because it belongs to no interval, panel, hop or model.
const NotApplicable = -1

// Entry describes one committed file. It is one row of the catalogue.
type Entry struct {
	// Stage is the stage that wrote the file. It is empty if the catalogue is bound to no plan.
	Stage string `parquet:"name=stage, type=BYTE_ARRAY, convertedtype=UTF8" json:"stage,omitempty"`
	Kind  string `parquet:"name=kind, type=BYTE_ARRAY, convertedtype=UTF8" json:"kind"`
	// Path is relative to the run directory, with slashes.
	Path  string `parquet:"name=path, type=BYTE_ARRAY, convertedtype=UTF8" json:"path"`
	Rows  int64  `parquet:"name=rows, type=INT64" json:"rows"`
	Bytes int64  `parquet:"name=bytes, type=INT64" json:"bytes"`
	// Checksum is "sha256:" and the lower-case hex sum of the file's bytes.
	Checksum string `parquet:"name=checksum, type=BYTE_ARRAY, convertedtype=UTF8" json:"checksum"`
	// Interval is the interval of rows and Block the first panel of columns of the file, or NotApplicable.
	Interval int32 `parquet:"name=interval, type=INT32" json:"interval"`
	Block    int32 `parquet:"name=block, type=INT32" json:"block"`
	// Lo and Hi are the rows [Lo, Hi) of a matrix or table that the file holds, First and Last its panels [First, Last). All are 0 if they
	// do not apply.
	Lo    int64 `parquet:"name=lo, type=INT64" json:"lo,omitempty"`
	Hi    int64 `parquet:"name=hi, type=INT64" json:"hi,omitempty"`
	First int32 `parquet:"name=first_panel, type=INT32" json:"first_panel,omitempty"`
	Last  int32 `parquet:"name=last_panel, type=INT32" json:"last_panel,omitempty"`
	// Hop is the number of hops of the file's rows, and Model the number of the model that the file is of; both are NotApplicable if they do
	// not apply.
	Hop   int32 `parquet:"name=hop, type=INT32" json:"hop"`
	Model int32 `parquet:"name=run, type=INT32" json:"run"`
	// Unknown is the number of nodes of a file with K whose K is unknown, or was one hop before; Until is the last hop that found K.
	Unknown int64 `parquet:"name=unknown, type=INT64" json:"unknown,omitempty"`
	Until   int32 `parquet:"name=until, type=INT32" json:"until,omitempty"`
	// Step is the kind of file that a step of a partition leaves for other steps, which has pieces [FirstPiece, LastPiece) of that step.
	Step       string `parquet:"name=step, type=BYTE_ARRAY, convertedtype=UTF8" json:"step,omitempty"`
	FirstPiece int32  `parquet:"name=first_piece, type=INT32" json:"first_piece,omitempty"`
	LastPiece  int32  `parquet:"name=last_piece, type=INT32" json:"last_piece,omitempty"`
	// ValueType is the type of the values of a tile, [Float32] or [Float16], or of the weights in sorted edges of a partition, [Float32].
	// It is empty for other files.
	ValueType string `parquet:"name=value_type, type=BYTE_ARRAY, convertedtype=UTF8" json:"value_type,omitempty"`
	// Plan is the hash of the part of the plan that decides the file's bytes.
	Plan string `parquet:"name=plan, type=BYTE_ARRAY, convertedtype=UTF8" json:"plan,omitempty"`
}

// Describe returns the description of a file that belongs to no interval, panel, hop or model.
func Describe(kind, path string) Entry {
	return Entry{Kind: kind, Path: path, Interval: NotApplicable, Block: NotApplicable, Hop: NotApplicable, Model: NotApplicable}
}

// In sets the interval of rows of the file.
func (e Entry) In(interval int) Entry {
	e.Interval = int32(interval)
	return e
}

// Holding sets the rows [lo, hi) that the file holds, and Rows to their number.
func (e Entry) Holding(lo, hi int64) Entry {
	e.Lo, e.Hi, e.Rows = lo, hi, hi-lo
	return e
}

// Counting sets the number of rows of the file.
func (e Entry) Counting(rows int64) Entry {
	e.Rows = rows
	return e
}

// Panels sets the panels [first, last) of 16 columns of the file.
func (e Entry) Panels(first, last int) Entry {
	e.Block, e.First, e.Last = int32(first), int32(first), int32(last)
	return e
}

// Awaits sets the number of nodes of the file whose K is unknown, and the last hop that found K.
func (e Entry) Awaits(unknown int64, until int) Entry {
	e.Unknown, e.Until = unknown, int32(until)
	return e
}

// OfStep sets the kind of a file that a step of a partition leaves.
func (e Entry) OfStep(step string) Entry {
	e.Step = step
	return e
}

// Pieces sets the pieces [first, last) of a step of a partition that the file has.
func (e Entry) Pieces(first, last int) Entry {
	e.FirstPiece, e.LastPiece = int32(first), int32(last)
	return e
}

// AtHop sets the number of hops of the file's rows.
func (e Entry) AtHop(hop int) Entry {
	e.Hop = int32(hop)
	return e
}

// OfModel sets the number of the model of the file.
func (e Entry) OfModel(model int) Entry {
	e.Model = int32(model)
	return e
}

// Of sets the stage that writes the file, if its kind does not tell.
func (e Entry) Of(stage string) Entry {
	e.Stage = stage
	return e
}

func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Interval, b.Interval), cmp.Compare(a.Block, b.Block), cmp.Compare(a.FirstPiece, b.FirstPiece),
		strings.Compare(a.Path, b.Path))
}

// Binding binds files to the plan that made them.
type Binding struct {
	// Stages maps each kind to the stage that writes it. It may omit kinds whose entries name their stage ([Entry.Of]).
	Stages map[string]string
	// Plans maps each stage to the hash of the part of the plan that decides its output.
	Plans map[string]string
}

// stamp completes an entry that is about to be listed.
func (b Binding) stamp(e Entry) Entry {
	if e.Stage == "" {
		e.Stage = b.Stages[e.Kind]
	}
	e.Plan = b.Plans[e.Stage]
	return e
}

// holds reports whether an entry was made under the plan.
func (b Binding) holds(e Entry) bool {
	return b.Plans == nil || e.Plan == b.Plans[e.Stage]
}

// records lists the files of a run directory that the catalogue never lists, because they describe the progress of the run. Names that end
// in a slash or a dot are prefixes.
var records = []string{Name, logPrefix, "run.json", "report.", "journal/", "cluster/"}

// IsRecord reports whether name belongs to such a file.
func IsRecord(name string) bool {
	return slices.ContainsFunc(records, func(r string) bool {
		return name == r || strings.HasPrefix(name, r) && strings.ContainsAny(r[len(r)-1:], "/.")
	})
}

// Cover chooses, from files that may overlap, files that together hold rows [lo, hi), in order. Files agree on rows that they share.
func Cover(all []Entry, lo, hi int64) (list []Entry, whole bool) {
	for lo < hi {
		next := Entry{Hi: lo}
		for _, e := range all {
			if e.Lo <= lo && e.Hi > next.Hi {
				next = e
			}
		}
		if next.Hi == lo {
			return nil, false
		}
		list, lo = append(list, next), next.Hi
	}
	return list, true
}
