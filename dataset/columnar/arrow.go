package columnar

import (
	"io"

	"github.com/apache/arrow/go/v14/arrow/ipc"
	"github.com/apache/arrow/go/v14/arrow/memory"

	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/mem"
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
	r, err := ipc.NewFileReader(file, ipc.WithAllocator(cappedRecords{memory.NewGoAllocator(), src.Name}))
	if err != nil {
		return nil, graph.BadData(src.Name, "%v: it is damaged or no Arrow IPC file, write it again", err)
	}
	return r, nil
}

// cappedRecords refuses what a damaged message may claim.
type cappedRecords struct {
	memory.Allocator
	name string
}

func (a cappedRecords) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

func (a cappedRecords) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}

func (a cappedRecords) check(size int) {
	if size > maxRecord {
		panic(graph.BadData(a.name, "a record batch of %s: write batches of at most %s", mem.Bytes(size), mem.Bytes(maxRecord)))
	}
}
