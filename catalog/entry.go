package catalog

import (
	"cmp"
	"slices"
	"strings"

	"ndls/internal/packed"
)

// How the values of a tile are stored.
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
	KindNodes            = "nodes"               // node table
	KindSplits           = "splits"              // where nodes belong in a split after the first
	KindFeatures         = "features"            // tile of input features
	KindLSI              = "lsi"                 // K table
	KindLSIPart          = "lsi-part"            // K of some rows
	KindLSISquares       = "lsi-squares"         // squared distances of nodes, of a panel of the probe
	KindLSIRows          = "lsi-rows"            // rows of a panel of the probe
	KindLSIFound         = "lsi-found"           // K of some nodes, as far as it is known
	KindLSISample        = "lsi-sample"          // distances of some nodes
	KindLabelLSI         = "label-lsi"           // K table for the epsilon of label smoothing
	KindLastHops         = "last-hops"           // until which hop rows are computed
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

// NotApplicable stands in the fields of an Entry that say where a file belongs, for
// files that belong to no interval, panel, hop or run.
const NotApplicable = -1

// Entry describes one committed file. It is one row of the catalogue.
type Entry struct {
	// Stage wrote the file, under a plan whose part that decides the file's bytes has
	// the hash Plan. Both are empty where the catalogue is bound to no plan.
	Stage string `parquet:"name=stage, type=BYTE_ARRAY, convertedtype=UTF8" json:"stage,omitempty"`
	Kind  string `parquet:"name=kind, type=BYTE_ARRAY, convertedtype=UTF8" json:"kind"`
	// Path is relative to the run directory, with slashes.
	Path  string `parquet:"name=path, type=BYTE_ARRAY, convertedtype=UTF8" json:"path"`
	Rows  int64  `parquet:"name=rows, type=INT64" json:"rows"`
	Bytes int64  `parquet:"name=bytes, type=INT64" json:"bytes"`
	// Checksum is "sha256:" and the lower-case hex sum of the file's bytes.
	Checksum string `parquet:"name=checksum, type=BYTE_ARRAY, convertedtype=UTF8" json:"checksum"`
	// Interval of rows and Block, the first panel of columns, place the file in a
	// matrix, or are NotApplicable.
	Interval int32 `parquet:"name=interval, type=INT32" json:"interval"`
	Block    int32 `parquet:"name=block, type=INT32" json:"block"`
	// Lo and Hi are the rows [Lo, Hi) that the file holds of a matrix or table, First and
	// Last its panels [First, Last), the pieces of a step of a partition, or the hops that it
	// takes until K of nodes is known; all 0 where the file is no such thing.
	Lo    int64 `parquet:"name=lo, type=INT64" json:"lo,omitempty"`
	Hi    int64 `parquet:"name=hi, type=INT64" json:"hi,omitempty"`
	First int32 `parquet:"name=first_panel, type=INT32" json:"first_panel,omitempty"`
	Last  int32 `parquet:"name=last_panel, type=INT32" json:"last_panel,omitempty"`
	// Hop is the number of hops that the file's rows have made, Run the model, the split or
	// the step of a partition that they are of, or which half of each panel they have ([Entry.OfSide]); or NotApplicable.
	Hop int32 `parquet:"name=hop, type=INT32" json:"hop"`
	Run int32 `parquet:"name=run, type=INT32" json:"run"`
	// ValueType is how the values of a tile are stored, [Float32] or [Float16], or the weights
	// in sorted edges of a partition, [Float32]. It is empty for other files, and for tiles
	// that versions before this field committed.
	ValueType string `parquet:"name=value_type, type=BYTE_ARRAY, convertedtype=UTF8" json:"value_type,omitempty"`
	// Plan is the hash of the part of the plan that decides the file's bytes.
	Plan string `parquet:"name=plan, type=BYTE_ARRAY, convertedtype=UTF8" json:"plan,omitempty"`
}

// Describe begins the description of a file: it belongs to no interval, panel, hop or
// run.
func Describe(kind, path string) Entry {
	return Entry{Kind: kind, Path: path, Interval: NotApplicable, Block: NotApplicable, Hop: NotApplicable, Run: NotApplicable}
}

// In says which interval of rows the file belongs to.
func (e Entry) In(interval int) Entry {
	e.Interval = int32(interval)
	return e
}

// Holding says which rows [lo, hi) the file holds, and sets Rows to their number.
func (e Entry) Holding(lo, hi int64) Entry {
	e.Lo, e.Hi, e.Rows = lo, hi, hi-lo
	return e
}

// Panels says which panels [first, last) of 16 columns the file is about.
func (e Entry) Panels(first, last int) Entry {
	e.Block, e.First, e.Last = int32(first), int32(first), int32(last)
	return e
}

// Awaits says after which hop the file's rows are expected to be known.
func (e Entry) Awaits(hop, last int) Entry {
	e.First, e.Last = int32(hop), int32(last)
	return e
}

// AtHop says how many hops the file's rows have made.
func (e Entry) AtHop(hop int) Entry {
	e.Hop = int32(hop)
	return e
}

// OfRun says which model or part the file is of.
func (e Entry) OfRun(run int) Entry {
	e.Run = int32(run)
	return e
}

// OfSide says which columns of each panel the file has.
func (e Entry) OfSide(side packed.Side) Entry {
	if side != packed.Both {
		e.Run = int32(side)
	}
	return e
}

// Side is what OfSide said of a file that belongs to no model, split or step.
func (e Entry) Side() packed.Side { return packed.Side(max(e.Run, 0)) }

// Of says which stage writes the file, where its kind does not tell.
func (e Entry) Of(stage string) Entry {
	e.Stage = stage
	return e
}

func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Interval, b.Interval), cmp.Compare(a.Block, b.Block), strings.Compare(a.Path, b.Path))
}

// Binding ties files to the plan that made them.
type Binding struct {
	// Stages says for each kind which stage writes it. It need not say so of kinds
	// whose entries name their stage ([Entry.Of]).
	Stages map[string]string
	// Plans has the hash of the part of the plan that decides what a stage writes,
	// by stage.
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

// holds says whether an entry was made under the plan.
func (b Binding) holds(e Entry) bool {
	return b.Plans == nil || e.Plan == b.Plans[e.Stage]
}

// records are the files of a run directory that are not in the catalogue: they say
// how the run goes. Names that end in a slash or a dot are prefixes.
var records = []string{Name, logPrefix, "run.json", "report.", "journal/", "cluster/"}

// IsRecord says whether a name is that of a file which says how the run goes, and
// which the catalogue therefore never lists.
func IsRecord(name string) bool {
	return slices.ContainsFunc(records, func(r string) bool {
		return name == r || strings.HasPrefix(name, r) && strings.ContainsAny(r[len(r)-1:], "/.")
	})
}
