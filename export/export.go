package export

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/meant"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/share"
	"ndls/shards"
)

var (
	// ErrOption reports an unknown artifact or format.
	ErrOption = failure.ErrOption
	// ErrExists reports an output file that is there already.
	ErrExists = failure.Kind("output file exists")
)

// Artifacts and Formats list what can be exported, and how; [Submission] is a further artifact.
var (
	Artifacts = []string{"lsi", "features", "smoothed", "hops", "soft-labels", "predictions", "edges", "nodes"}
	Formats   = []string{"csv", "npy", "parquet", "arrow"}
)

// Options say what to write where.
type Options struct {
	What, Format string
	// Part writes one of several ranges of ids, which have about as many rows: with [share.Part.Range] of the ids in
	// ascending order, or of the edges. An edge is where its first end is.
	Part share.Part
	// TrueLabels adds to predictions the name of the predicted class, the true label of each
	// node, -1 for none, its name, and the split.
	TrueLabels bool
	// Out is a path on the local file system. A file appears complete or not at
	// all; what is there is replaced only with Force. A pipe or a device takes the
	// rows as they come. A name that ends in .gz or .zst gets compressed bytes.
	Out   string
	Force bool
	// To, unless nil, takes the rows as they come, in place of Out.
	To     io.Writer
	Budget *mem.Budget
}

// writer takes rows, column by column, n at a time.
type writer interface {
	write(cols [][]byte, n int) error
	close() error
}

// Run exports from the run directory of cat and returns the number of rows. Errors wrap
// [ErrOption], [ErrExists], [mem.ErrBudget], [seal.ErrCorrupt] or come from the file system.
func Run(ctx context.Context, cat *catalog.Catalog, o Options) (rows int64, err error) {
	if o.What != Submission && !slices.Contains(Artifacts, o.What) {
		return 0, failure.Of(ErrOption, "--what %q is none of %s, %s%s", o.What, strings.Join(Artifacts, ", "), Submission, meant.Hint(o.What, append(slices.Clone(Artifacts), Submission)))
	}
	if o.Format != SubmissionFormat && !slices.Contains(Formats, o.Format) {
		return 0, failure.Of(ErrOption, "--format %q is none of %s, %s%s", o.Format, strings.Join(Formats, ", "), SubmissionFormat, meant.Hint(o.Format, Formats))
	}
	if (o.What == Submission) != (o.Format == SubmissionFormat) {
		return 0, failure.Of(ErrOption, "--what %s with --format %s: %s is the format of %s, and of nothing else", o.What, o.Format, SubmissionFormat, Submission)
	}
	if o.TrueLabels && o.What != "predictions" {
		return 0, failure.Of(ErrOption, "--true-labels with --what %s: it adds columns to predictions alone", o.What)
	}
	if err := o.Part.Validate(); err != nil {
		return 0, failure.As(ErrOption, err)
	}
	if o.What == Submission && !o.Part.Whole() {
		return 0, failure.Of(ErrOption, "--part with --what %s: a submission is one file; leave --part out, or export parts of predictions", Submission)
	}
	if err := o.check(); err != nil {
		return 0, err
	}
	// Others are verified while they are scanned: no row is written before all that a scan reads is right.
	if err := verify(ctx, cat, o.What, scanned...); err != nil {
		return 0, err
	}
	out, err := o.create()
	if err != nil {
		return 0, err
	}
	defer out.abort()
	switch o.What {
	case "edges":
		rows, err = exportEdges(ctx, cat, o, out)
	case Submission:
		rows, err = exportSubmission(ctx, cat, o, out)
	default:
		rows, err = exportTable(ctx, cat, o, out)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", o.What, err)
	}
	if err := o.check(); err != nil {
		return 0, err
	}
	return rows, out.commit()
}

// made says which kinds of file an artifact is read from and which verb makes it.
var made = map[string]struct {
	kinds []string
	verb  string
}{
	"lsi":         {[]string{catalog.KindLSI}, "lsi"},
	"features":    {[]string{catalog.KindNodes, catalog.KindFeatures}, "partition"},
	"smoothed":    {[]string{catalog.KindSmoothed}, "smooth"},
	"hops":        {[]string{catalog.KindKeptHops}, "smooth --keep-hops 0..3"},
	"soft-labels": {[]string{catalog.KindSoftLabels}, "train"},
	"predictions": {[]string{catalog.KindPredictions}, "smooth-labels"},
	Submission:    {[]string{catalog.KindPredictions, catalog.KindNodes}, "smooth-labels"},
	"edges":       {[]string{catalog.KindNodes, catalog.KindEdges}, "partition"},
	"nodes":       {[]string{catalog.KindNodes}, "partition"},
}

// scanned are the kinds of files that a scan compares with their checksums.
var scanned = []string{catalog.KindFeatures, catalog.KindSmoothed, catalog.KindKeptHops, catalog.KindSoftLabels, catalog.KindPredictions}

// verify compares the files that the artifact is made of with their checksums, except for
// some kinds.
func verify(ctx context.Context, cat *catalog.Catalog, what string, except ...string) error {
	var entries []catalog.Entry
	for _, kind := range made[what].kinds {
		if kind == catalog.KindEdges {
			kind = edgesKind(cat)
		}
		found := cat.Entries(kind)
		if len(found) == 0 && kind == catalog.KindFeatures {
			if s, err := shards.ReadSummary(ctx, cat); err == nil && s.Features > 0 {
				return fmt.Errorf("%s has no features any more: they were removed once they were smoothed (--keep-features=false); ndls partition --dataset URI --run %s --resume=false imports them again", cat.Store().URI(), cat.Store().URI())
			}
		}
		if len(found) == 0 && (kind == catalog.KindSmoothed || kind == catalog.KindKeptHops) && len(cat.Entries(catalog.KindPredictions)) > 0 &&
			len(cat.Entries(catalog.KindSmoothed))+len(cat.Entries(catalog.KindKeptHops)) == 0 && len(cat.Entries(catalog.KindModel)) > 0 {
			return fmt.Errorf("%s has no smoothed rows any more: they were removed once labels were smoothed (--keep-smoothed=false); ndls smooth --run %s --resume=false makes them again, and discards what was made of them", cat.Store().URI(), cat.Store().URI())
		}
		if len(found) == 0 && kind == catalog.KindSmoothed && len(cat.Entries(catalog.KindKeptHops)) > 0 {
			return fmt.Errorf("%s has no smoothed rows, because its rule writes hops alone; export --what hops", cat.Store().URI())
		}
		if len(found) == 0 {
			return fmt.Errorf("%[1]s has no %[2]s; run this first: ndls %[3]s --run %[1]s", cat.Store().URI(), what, made[what].verb)
		}
		if !slices.Contains(except, kind) {
			entries = append(entries, found...)
		}
	}
	entries = append(entries, cat.Entries(catalog.KindIDs)...)
	var bytes int64
	for _, e := range entries {
		bytes += e.Bytes
	}
	m := progress.Start(ctx, "verify", bytes, "bytes")
	defer m.Done()
	return share.Each(min(runtime.GOMAXPROCS(0), mostVerified), len(entries), func(i int) error {
		if err := cat.Verify(ctx, entries[i]); err != nil {
			return err
		}
		m.Add(entries[i].Bytes)
		return nil
	})
}

// mostVerified bounds how many files are read at a time: each has buffers.
const mostVerified = 8
