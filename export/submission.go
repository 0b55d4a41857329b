package export

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/failure"
	"ndls/internal/mem"
)

// Submission is the file that the evaluator of OGB-LSC's MAG240M saves: an archive of NumPy
// with the array y_pred, the predicted class of each test node as int16, in order of node id.
const (
	Submission       = "ogb-submission"
	SubmissionFormat = "npz"
)

// testSplit is the number of the test split in the node table.
var testSplit = uint8(slices.Index(splitNames, "test"))

// exportSubmission writes the predicted classes of the test nodes.
func exportSubmission(ctx context.Context, cat *catalog.Catalog, o Options, out io.Writer) (rows int64, err error) {
	src, err := rowSource(ctx, cat, catalog.KindPredictions, o.Budget)
	if err != nil {
		return 0, err
	}
	if err := src.addTruth(ctx, cat, o.Budget); err != nil {
		return 0, err
	}
	defer src.free()
	of := func(name string) int {
		return slices.IndexFunc(src.columns, func(c column) bool { return c.name == name })
	}
	label, split := of("label"), of("split")
	each := func(visit func(id int64, class int32) error) error {
		return src.scan(ctx, func(_ int64, cols [][]byte) error {
			ids, classes := view[int64](cols[0]), view[int32](cols[label])
			for i, s := range cols[split] {
				if s == testSplit {
					if err := visit(ids[i], classes[i]); err != nil {
						return err
					}
				}
			}
			return ctx.Err()
		})
	}
	if err := each(func(int64, int32) error { rows++; return nil }); err != nil {
		return 0, err
	}
	if rows == 0 {
		return 0, failure.Of(ErrOption, "no node is in the split test: a submission has the predictions of test nodes")
	}
	keys, err := mem.Alloc[uint64](o.Budget, rows, "predictions of test nodes")
	if err != nil {
		return 0, err
	}
	defer keys.Free()
	at := 0
	if err := each(func(id int64, class int32) error {
		if class > math.MaxInt16 {
			return failure.Of(ErrOption, "class %d: a submission has int16, up to %d; export predictions as npy", class, math.MaxInt16)
		}
		keys.S[at] = uint64(id)<<16 | uint64(class)
		at++
		return nil
	}); err != nil {
		return 0, err
	}
	extsort.SortKeys(keys.S, runtime.GOMAXPROCS(0))
	archive := zip.NewWriter(out)
	w, err := archive.Create("y_pred.npy")
	if err != nil {
		return 0, err
	}
	if _, err := w.Write(npyHead("'<i2'", fmt.Sprintf("(%d,)", rows))); err != nil {
		return 0, err
	}
	var text []byte
	for part := range slices.Chunk(keys.S, textBytes) {
		text = text[:0]
		for _, k := range part {
			text = binary.LittleEndian.AppendUint16(text, uint16(k))
		}
		if _, err := w.Write(text); err != nil {
			return 0, err
		}
	}
	return rows, archive.Close()
}

// npyHead returns the bytes before the values of an array, in format version 1.0 of NumPy's NEP 1.
func npyHead(descr, shape string) []byte {
	head := fmt.Sprintf("{'descr': %s, 'fortran_order': False, 'shape': %s, }", descr, shape)
	// The values start at a multiple of 64 bytes, after a line end.
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	all := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	return append(all, head...)
}
