package stage

import (
	"io"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/shards"
)

// Kind describes one kind of catalogued file.
type Kind struct {
	Name string
	// Lasting says that the files stay once the stage is complete, and that no later stage changes them.
	Lasting bool
	// Until, if not empty, is the last stage that reads the files. They are removed when it is complete, so that the files left by a run do
	// not depend on whether they were made.
	Until control.Stage
	// Rows reads a file to its end and returns its number of rows. It is nil for files without rows.
	Rows func(r storage.Reader, name string) (int64, error)
	// Stage is the stage that writes the kind; the registry sets it. It is empty if entries name their stage themselves.
	Stage control.Stage
}

// common lists the kinds that several stages write.
var common = []Kind{{Name: catalog.KindCheckpoint}}

// kinds maps the name of a kind to its description.
var kinds = func() map[string]Kind {
	m := map[string]Kind{}
	add := func(list []Kind, stage control.Stage) {
		for _, k := range list {
			k.Stage = stage
			m[k.Name] = k
		}
	}
	add(common, "")
	for _, s := range All {
		add(s.Writes(), s.Name())
	}
	return m
}()

// KindOf returns the description of a kind, or the zero Kind if the name is unknown.
func KindOf(name string) Kind { return kinds[name] }

func countEdges(r storage.Reader, name string) (n int64, err error) {
	edges, err := shards.OpenEdges(r, name)
	if err != nil {
		return 0, err
	}
	src, dst := make([]uint32, 1<<16), make([]uint32, 1<<16)
	for {
		got, err := edges.Read(src, dst)
		n += int64(got)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func countNodes(r storage.Reader, name string) (n int64, err error) {
	err = shards.ReadNodes(r, name, shards.Readers{}, func(_ int64, b shards.NodeBatch) error { n += int64(len(b.ID)); return nil })
	return n, err
}

func countIDs(r storage.Reader, name string) (n int64, err error) {
	ids, err := shards.OpenIDs(r, name)
	if err != nil {
		return 0, err
	}
	err = ids.Each(func(_ int64, keys [][]byte) error { n += int64(len(keys)); return nil })
	return n, err
}

func countLSI(r storage.Reader, name string) (n int64, err error) {
	err = shards.ReadLSI(r, name, shards.Readers{}, func(_ int64, b shards.LSIBatch) error { n += int64(len(b.ID)); return nil })
	return n, err
}

func countRows(r storage.Reader, name string) (n int64, err error) {
	rows, err := shards.OpenRows(r, name)
	if err != nil {
		return 0, err
	}
	var b shards.RowBatch
	for i := range rows.NumBatches() {
		if err := rows.ReadBatch(i, &b); err != nil {
			return n, err
		}
		n += int64(len(b.ID))
	}
	return n, nil
}
