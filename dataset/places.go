package dataset

import (
	"context"
	"errors"
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
	rows, err := openPart(ctx, ds, part)
	if err != nil {
		return err
	}
	defer rows.Close()
	var first, firstValue string
	for {
		node, value, err := rows.next()
		if err == io.EOF {
			return graph.BadData(ds.Info().Name, "node %d has a second %s: keep one of the two", id, part)
		}
		if err != nil {
			return err
		}
		switch {
		case node != id:
		case first == "":
			first, firstValue = rows.Position(), value
		case part == FeatureRows:
			return graph.BadData(rows.Position(), "node %s has a second feature row, the first is in %s: keep one of the two", rows.nodeName(id), first)
		case value != firstValue:
			return graph.BadData(rows.Position(), "node %s has the %s %s, and another one, %s, in %s: keep one of the two", rows.nodeName(id), part, value, firstValue, first)
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

// partRows walks over the rows of a part.
type partRows struct {
	io.Closer
	reader any
	next   func() (id uint32, value string, err error)
	name   string // of the dataset
	row    int64  // rows given
}

func openPart(ctx context.Context, ds Dataset, part Part) (*partRows, error) {
	p := &partRows{name: ds.Info().Name}
	switch part {
	case FeatureRows:
		r, err := ds.Features(ctx, Whole)
		if err != nil {
			return nil, err
		}
		p.Closer, p.reader = r, r
		p.next = func() (uint32, string, error) {
			f, err := r.Next()
			p.row++
			return f.ID, "", err
		}
	case LabelRows:
		r, err := ds.Labels(ctx)
		if err != nil {
			return nil, err
		}
		classes := ds.Info().Classes
		p.Closer, p.reader = r, r
		p.next = func() (uint32, string, error) {
			id, label, err := r.Next()
			p.row++
			if err == nil && int(label) < len(classes) {
				return id, strconv.Quote(classes[label]), nil
			}
			return id, strconv.Itoa(int(label)), err
		}
	case SplitRows:
		r, err := ds.Splits(ctx, 0)
		if err != nil {
			return nil, err
		}
		p.Closer, p.reader = r, r
		p.next = func() (uint32, string, error) {
			id, split, err := r.Next()
			p.row++
			return id, split.String(), err
		}
	default:
		return nil, errors.New("there is no part " + string(part))
	}
	return p, nil
}

// nodeName is the input id of the node of the row that was read last.
func (p *partRows) nodeName(id uint32) string { return NodeName(p.reader, id) }

// NodeName returns the input id, as messages show it, of the node of the row that a reader of
// features, labels or splits has read last. id is the value of the row, which is a number if ids
// are numbered.
func NodeName(reader any, id uint32) string {
	if name := graph.NodeName(reader); name != "" {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}

func (p *partRows) Position() string {
	return graph.Position(p.reader, graph.RowOf(p.name, p.row-1))
}
