package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/dataset/prepare"
	"ndls/internal/progress"
	"ndls/steps"
)

// Fit finds how the columns of a dataset become features ([prepare.Columns]), if numbers may be missing or are transformed, or there are
// categories. The step comes after Number and before all others.
const Fit = "fit"

// ColumnsPath is the path of the columns.
const ColumnsPath = "graph/columns.json"

// Fits reports whether there is a step Fit in the partition of the dataset of an identity.
func Fits(identity string, o Options) bool {
	return o.Features && (o.Fill != "" || transform(o.Normalize) != "" || dataset.HasCategories(identity))
}

// transform returns the transform of numbers that an option names, "" for none.
func transform(normalize string) string {
	if slices.Contains([]string{NormalizeLog, NormalizeQuantile}, normalize) {
		return normalize
	}
	return ""
}

// nextStep is a function such as [Next].
type nextStep = func(context.Context, *catalog.Catalog) (steps.Left, error)

// NextFitted returns next with the step Fit.
func NextFitted(next nextStep) nextStep {
	return func(ctx context.Context, cat *catalog.Catalog) (steps.Left, error) {
		l, err := next(ctx, cat)
		if _, there := cat.Lookup(ColumnsPath); there || err != nil || l.Step == Number || len(cat.Entries(catalog.KindSummary)) > 0 {
			return l, err
		}
		return steps.Left{Step: Fit, Pieces: steps.Units(1), Superseded: func(catalog.Entry) bool { return false }}, nil
	}
}

// ReadColumns reads the columns of a partition; they are nil if it has no step Fit.
func ReadColumns(ctx context.Context, cat *catalog.Catalog) (*prepare.Columns, error) {
	e, there := cat.Lookup(ColumnsPath)
	if !there {
		return nil, nil
	}
	text, err := ColumnsText(ctx, cat, e)
	c := &prepare.Columns{}
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ColumnsPath, err)
	}
	return c.Index(), nil
}

// ColumnsText reads the file with the columns of a partition.
func ColumnsText(ctx context.Context, cat *catalog.Catalog, e catalog.Entry) (_ []byte, err error) {
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// FitReads reports whether the step Fit reads the features of the dataset of an identity.
func FitReads(identity string, o Options) bool {
	return Fits(identity, o) && (o.Fill != "" || o.Normalize == NormalizeQuantile || dataset.HasCategories(identity))
}

// FitReadings returns how often the step Fit reads features of so many columns of numbers and categories, if it does, within free bytes.
func FitReadings(o Options, columns int, free int64) int64 {
	return prepare.Readings(o.fit(), columns, free)
}

// fit returns what the step Fit is to find.
func (o Options) fit() prepare.Options {
	return prepare.Options{Transform: transform(o.Normalize), Fill: o.Fill != "", Neighbours: o.Fill == FillNeighbours}
}

// FitColumns finds the columns of a dataset whose streams can be read; they are nil if there is no step Fit.
func FitColumns(ctx context.Context, ds dataset.Dataset, o Options) (_ *prepare.Columns, err error) {
	if !Fits(ds.Info().Identity, o) {
		return nil, nil
	}
	j, err := newJob(ds, nil, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	return j.fitting().find(ctx)
}

// fitting holds the step Fit.
type fitting struct{ *job }

func (j *job) fitting() fitting { return fitting{j} }

// do executes the step.
func (j fitting) do(ctx context.Context, _ steps.Piece) error { return j.fit(ctx) }

// fit commits the columns, unless that is done or there are none, and makes the job use them.
func (j fitting) fit(ctx context.Context) error {
	if _, there := j.cat.Lookup(ColumnsPath); !there && Fits(j.info.Identity, j.o) {
		write, err := j.made(ctx)
		if err != nil {
			return err
		}
		if err := j.cat.Write(ctx, catalog.Describe(catalog.KindColumns, ColumnsPath).Counting(1), write); err != nil {
			return err
		}
	}
	return j.use(ctx)
}

// made finds the columns, or takes over those of another partition, and returns what writes them.
func (j fitting) made(ctx context.Context) (write func(*catalog.File) error, err error) {
	if j.o.Columns != nil {
		text, err := j.o.Columns(ctx)
		return func(f *catalog.File) error {
			_, err := f.Write(text)
			return err
		}, err
	}
	if err := j.numbering().load(ctx); err != nil {
		return nil, err
	}
	defer j.numbering().free()
	c, err := j.find(ctx)
	return writeJSON(c), err
}

// use makes the job use the columns, if there are some.
func (j fitting) use(ctx context.Context) (err error) {
	if j.columns, err = ReadColumns(ctx, j.cat); j.columns == nil || err != nil {
		return err
	}
	if err := j.columns.Check(j.info); err != nil {
		return err
	}
	j.info.NumFeatures = j.columns.Width()
	return nil
}

// find reads the features.
func (j fitting) find(ctx context.Context) (*prepare.Columns, error) {
	return prepare.Fit(ctx, j.o.Budget, j.info, j.o.fit(), func(ctx context.Context, visitor func() prepare.Visit) error {
		readers, err := j.takeReaders(j.info.RowMemory)
		if err != nil {
			return err
		}
		defer readers.release()
		meter := progress.Start(ctx, "looking at features", max(j.info.NumNodes, 0), "rows")
		defer meter.Done()
		if readers.n == 1 || !j.info.CutsFeatures {
			return j.visit(ctx, allSlices, meter, visitor())
		}
		err = inParts(ctx, readers.n, allSlices, func(ctx context.Context) func(steps.Piece) error {
			visit := visitor()
			return func(p steps.Piece) error { return j.visit(ctx, p, meter, visit) }
		})
		if errors.Is(err, dataset.ErrData) { // one thread finds the first bad row
			none := func(dataset.FeatureRow, func() string) error { return nil }
			if first := j.visit(ctx, allSlices, meter, none); first != nil {
				return first
			}
		}
		return err
	})
}

// visit visits a part of the rows of the nodes, if the dataset can be cut, or all of them.
func (j fitting) visit(ctx context.Context, p steps.Piece, meter *progress.Meter, visit prepare.Visit) (err error) {
	r, err := j.openFeatures(ctx, p)
	if err != nil {
		return err
	}
	where := func() string { return prepare.Position(r) }
	return eachRow(ctx, r, meter, func(int64) error {
		f, err := r.Next()
		if err == nil && j.holds(f.ID) {
			err = visit(f, where)
		}
		return err
	})
}

// openFeatures opens a part of the rows, if the dataset can be cut, or all rows: as features, once the columns are known.
func (j fitting) openFeatures(ctx context.Context, p steps.Piece) (r dataset.FeatureReader, err error) {
	r, err = j.ds.Features(ctx, dataset.Share{First: p.First, Last: p.Last, Of: Slices})
	if err != nil || j.columns == nil {
		return r, err
	}
	return j.columns.Read(r), nil
}
