package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// jsonFeatures is an object of node id → list of the columns that are 1.
type jsonFeatures struct {
	src   *source.Source
	width int
	limit graph.IDLimit
}

// openJSONFeatures reads the file once to learn its width.
func openJSONFeatures(ctx context.Context, src *source.Source, limit graph.IDLimit) (*jsonFeatures, error) {
	f := &jsonFeatures{src: src, limit: limit}
	r, err := f.Open(ctx, Whole)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		row, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if n := len(row.Indices); n > 0 {
			f.width = max(f.width, int(row.Indices[n-1])+1)
		}
	}
	if f.width == 0 {
		return nil, graph.BadData(src.Name, "holds no feature")
	}
	return f, nil
}

func (f *jsonFeatures) Open(ctx context.Context, _ Share) (FeatureReader, error) {
	j, err := source.OpenJSON(ctx, f.src)
	if err != nil {
		return nil, err
	}
	if err := j.Expect('{', "an object of node id to list of feature ids"); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &jsonReader{jsonFeatures: f, JSON: j}, nil
}

// jsonReader reads the one shape of JSON that is read, as it streams by.
type jsonReader struct {
	*jsonFeatures
	*source.JSON
	row FeatureRow
}

// ReadsFrom names the file.
func (r *jsonReader) ReadsFrom() string { return r.src.Name }

// Next implements graph.FeatureReader.
func (r *jsonReader) Next() (FeatureRow, error) {
	id, err := r.NextID(&r.limit)
	if err != nil {
		return FeatureRow{}, err
	}
	r.row.ID = id
	err = r.list()
	return r.row, err
}

// list takes the feature ids of a node.
func (r *jsonReader) list() error {
	row := &r.row
	row.Indices, row.Values = row.Indices[:0], row.Values[:0]
	if err := r.Expect('[', "a list of feature ids"); err != nil {
		return err
	}
	for r.More() {
		t, err := r.Token()
		if err != nil {
			return err
		}
		number, _ := t.(json.Number)
		v, err := strconv.ParseUint(string(number), 10, 32)
		if err != nil || v >= MaxFeatures || len(row.Indices) == MaxFeatures {
			return r.Bad("feature id %v of node %d: feature ids are whole numbers below %d", t, row.ID, MaxFeatures)
		}
		row.Indices, row.Values = append(row.Indices, uint32(v)), append(row.Values, 1)
	}
	if err := r.Expect(']', "the end of the list"); err != nil {
		return err
	}
	slices.Sort(row.Indices)
	for i := 1; i < len(row.Indices); i++ {
		if row.Indices[i] == row.Indices[i-1] {
			return r.Bad("node %d has feature %d twice: list each one once", row.ID, row.Indices[i])
		}
	}
	return nil
}
