package dataset

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"ndls/dataset/graph"
)

// Part is one of the streams of a dataset that has a row for a node.
type Part string

// The parts whose rows a node has once.
const (
	FeatureRows Part = "feature row"
	LabelRows   Part = "label"
	SplitRows   Part = "split"
)

// Repeated is the error for a node that a part gives twice, with two different
// values where it is a label or a split. It reads the part again to name the file and
// the line of both.
func Repeated(ctx context.Context, ds Dataset, part Part, id uint32) error {
	rows, next, err := openRows(ctx, ds, part)
	if err != nil {
		return err
	}
	defer rows.Close()
	var first, firstValue string
	for row := int64(0); ; row++ {
		node, value, err := next()
		if err == io.EOF {
			return graph.BadData(ds.Info().Name, "node %d has a second %s: keep one of the two", id, part)
		}
		if err != nil {
			return err
		}
		if node != id {
			continue
		}
		name, where := NodeName(rows, id), graph.Position(rows, graph.RowOf(ds.Info().Name, row))
		switch {
		case first == "":
			first, firstValue = where, value
		case part == FeatureRows:
			return graph.BadData(where, "node %s has a second feature row, the first is in %s: keep one of the two", name, first)
		case value != firstValue:
			return graph.BadData(where, "node %s has the %s %s, and another one, %s, in %s: keep one of the two", name, part, value, firstValue, first)
		}
	}
}

// LackingFeatures is the error for count nodes without a feature row; id is one of
// them.
func LackingFeatures(ctx context.Context, ds Dataset, id uint32, count int64) error {
	name := ds.Info().Name
	r, err := ds.Features(ctx, Whole)
	if err != nil {
		return err
	}
	defer r.Close()
	if f, ok := r.(interface{ ReadsFrom() string }); ok {
		name = f.ReadsFrom()
	}
	others := ""
	switch {
	case count == 2:
		others = ", and one other node has none either"
	case count > 2:
		others = fmt.Sprintf(", and %d other nodes have none either", count-1)
	}
	return graph.BadData(name, "node %d has no feature row%s: give each node one, or run without features (--features none)", id, others)
}

// openRows opens the rows of a part. next gives the node of the next one, and its value as text.
func openRows(ctx context.Context, ds Dataset, part Part) (rows io.Closer, next func() (id uint32, value string, err error), err error) {
	switch part {
	case FeatureRows:
		r, err := ds.Features(ctx, Whole)
		return r, func() (uint32, string, error) {
			f, err := r.Next()
			return f.ID, "", err
		}, err
	case LabelRows:
		r, err := ds.Labels(ctx)
		classes := ds.Info().Classes
		return r, func() (uint32, string, error) {
			id, label, err := r.Next()
			if err == nil && int(label) < len(classes) {
				return id, strconv.Quote(classes[label]), nil
			}
			return id, strconv.Itoa(int(label)), err
		}, err
	}
	r, err := ds.Splits(ctx, 0)
	return r, func() (uint32, string, error) {
		id, split, err := r.Next()
		return id, split.String(), err
	}, err
}

// NodeName returns the input id, as messages show it, of the node of the row that a reader of
// features, labels or splits has read last. id is the value of the row, which is a number if ids
// are numbered.
func NodeName(reader any, id uint32) string {
	if name := graph.NodeName(reader); name != "" {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}
