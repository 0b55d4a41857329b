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
	// Stage writes it. It is empty where entries name their stage themselves.
	Stage control.Stage
	// Lasting says that the files stay once the stage is complete, and that no later
	// stage changes them.
	Lasting bool
	// Rows reads a file to its end and counts its rows, nil where there is nothing to
	// count.
	Rows func(r storage.Reader, name string) (int64, error)
}

// Kinds is the registry of artifact kinds: a new kind is one line.
var Kinds = []Kind{
	{catalog.KindSummary, control.Partition, true, nil},
	{catalog.KindEdges, control.Partition, true, countEdges},
	{catalog.KindNodes, control.Partition, true, countNodes},
	{catalog.KindFeatures, control.Partition, true, nil},
	{catalog.KindHops, control.Partition, false, nil}, // derived from edges, and made again where missing
	{catalog.KindRun, control.Partition, false, nil},
	{catalog.KindLSI, control.LSI, true, countLSI},
	{catalog.KindLSIPart, control.LSI, false, nil},
	{catalog.KindSmoothed, control.Smooth, true, countRows},
	{catalog.KindSmoothedTile, control.Smooth, false, nil},
	{catalog.KindSmoothedPart, control.Smooth, false, nil},
	{catalog.KindModel, control.Train, true, nil},
	{catalog.KindTally, control.Predict, true, nil},
	{catalog.KindSoftLabels, control.Predict, true, countRows},
	{catalog.KindSoftTile, control.Predict, true, nil},
	{catalog.KindPredictions, control.SmoothLabels, true, countRows},
	{catalog.KindGivenSoftTile, control.SmoothLabels, true, nil},
	{catalog.KindSmoothedSoftTile, control.SmoothLabels, true, nil},
	{catalog.KindSmoothedSoftPart, control.SmoothLabels, false, nil},
	{catalog.KindCheckpoint, "", false, nil},
}

var kinds = func() map[string]Kind {
	m := map[string]Kind{}
	for _, k := range Kinds {
		m[k.Name] = k
	}
	return m
}()

// KindOf describes a kind; the zero Kind stands for one that is not known.
func KindOf(name string) Kind { return kinds[name] }

// Binding ties the files of a run directory to a plan.
func Binding(p control.Plan) catalog.Binding {
	b := catalog.Binding{Stages: map[string]string{}, Plans: p.Hashes()}
	for _, k := range Kinds {
		b.Stages[k.Name] = string(k.Stage)
	}
	return b
}

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
	err = shards.ReadNodes(r, name, func(_ int64, b shards.NodeBatch) error { n += int64(len(b.ID)); return nil })
	return n, err
}

func countLSI(r storage.Reader, name string) (n int64, err error) {
	err = shards.ReadLSI(r, name, func(_ int64, b shards.LSIBatch) error { n += int64(len(b.ID)); return nil })
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
