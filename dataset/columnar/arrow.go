package columnar

import (
	"io"

	"github.com/apache/arrow/go/v14/arrow/ipc"
	"github.com/apache/arrow/go/v14/arrow/memory"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// maxRecord is the largest record batch of an Arrow file, which is read into
// memory as a whole.
const maxRecord = 32 << 20

// OpenArrow opens an Arrow IPC file.
func OpenArrow(src *source.Source) (_ *ipc.FileReader, err error) {
	if src.Unpack != nil {
		return nil, graph.BadData(src.Name, "is a packed Arrow file: unpack it")
	}
	defer Recover(src.Name, &err)
	file := io.NewSectionReader(src.File, src.Off, src.End-src.Off)
	if err := checkArrowFooter(file, file.Size()); err != nil {
		return nil, graph.BadData(src.Name, "%v: write the file again", err)
	}
	r, err := ipc.NewFileReader(file, ipc.WithAllocator(capped{memory.NewGoAllocator(), src.Name, maxRecord, "a record batch of %s: write batches of at most %s"}))
	if err != nil {
		return nil, graph.BadData(src.Name, "%v: it is damaged or no Arrow IPC file, write it again", err)
	}
	return r, nil
}
