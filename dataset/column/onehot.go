package column

import (
	"context"
	"errors"
	"strconv"

	"ndls/dataset/array"
	"ndls/dataset/graph"
)

// OfLabels takes the labels from an array with an entry for each node, or with a row for each
// node and a column for each class, in which there is one 1. rows is the number of nodes, and
// note says what was read as what.
func OfLabels(v array.Vector, shape []int64) (c Column, rows int64, note graph.Note, err error) {
	switch {
	case len(shape) == 1, len(shape) == 2 && (shape[0] == 1 || shape[1] == 1):
		return Vector{Values: v}, v.N, note, nil
	case len(shape) != 2 || v.Type.IsText():
		return nil, 0, note, graph.BadData(v.Name, "has shape %v: labels are a vector with one class for each node, or a matrix of 0 and 1 with one column for each class", shape)
	case shape[1] < 1 || shape[1] > MaxClasses:
		return nil, 0, note, graph.BadData(v.Name, "has shape %v: a matrix of labels has one column for each class, at most %d", shape, MaxClasses)
	}
	note = graph.NoteOf(v.Name, "has shape %v: the class of a node is the column of the 1 in its row", shape)
	return OneHot{v, shape[1]}, shape[0], note, nil
}

// OneHot is a matrix with a row for each node and a column for each class, in which there is at most one 1.
type OneHot struct {
	Values array.Vector
	Width  int64
}

// Where implements [Column].
func (c OneHot) Where() string { return c.Values.Name }

// Open implements [Column].
func (c OneHot) Open(ctx context.Context) (Reader, error) {
	values, err := c.Values.Doubles(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &vectorReader{name: c.Values.Name, Closer: values, number: func() (string, error) {
		class := int64(-1)
		for i := range c.Width {
			v, err := values.Next()
			switch {
			case err != nil:
				return "", err
			case v == 0:
			case v != 1:
				return "", errNoHot
			case class >= 0:
				return "", errTwoHot
			default:
				class = i
			}
		}
		if class < 0 {
			return "", nil
		}
		return strconv.FormatInt(class, 10), nil
	}}, nil
}

var (
	errNoHot  = errors.New("holds another number than 0 and 1: labels are a vector of classes, or a matrix with one 1 in each row; of probabilities save a.argmax(axis=1)")
	errTwoHot = errors.New("has more than one 1: a node has one class; save one column of the matrix to train for it alone")
)
