package ndls

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/rundir"
	"ndls/internal/vfs"
	"ndls/partition"
	"ndls/plan"
	"ndls/stage/imports"
	"ndls/stage/registry"
)

// InspectConfig says which dataset to inspect, as what, and with what.
type InspectConfig struct {
	// Dataset is the URI of the dataset.
	Dataset string
	// Options, unless nil, changes the default options. Those of the partition count.
	Options func(*Options)
	// Resources bounds what the inspection may use. Without a folder for temporary files it makes
	// one in the system's.
	Resources Resources
}

// An Inspection holds what an import would find in a dataset.
type Inspection struct {
	Dataset string `json:"dataset"`
	// Tables describes the tables of a dataset of tables, with the use of each column.
	Tables []DatasetTable `json:"tables,omitempty"`
	// Files are the files that an import opens.
	Files []InspectedFile `json:"files"`
	// Notes say what is read as what, and what is left out.
	Notes []InspectedNote `json:"notes,omitempty"`
	// Graph describes the content of the files. It is nil if an import would refuse them.
	Graph *Survey `json:"graph,omitempty"`
}

// Types of what an inspection holds.
type (
	DatasetTable = dataset.Table
	Survey       = partition.Survey
	Strengths    = partition.Strengths
)

// InspectedFile is a file that an import opens.
type InspectedFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// InspectedNote is a message about a file in the log of an import.
type InspectedNote struct {
	Text    string `json:"text"`
	Warning bool   `json:"warning"`
}

// Inspect reads a dataset as an import does and keeps nothing of it. What an import would
// refuse gives the same error, together with what was known by then.
func Inspect(ctx context.Context, c InspectConfig) (in Inspection, err error) {
	defer func() { err = interruption(ctx, err) }()
	in.Dataset = c.Dataset
	opts := Config{Dataset: c.Dataset, Options: c.Options}.Over(plan.Default())
	if err := registry.Validate(opts); err != nil {
		return in, err
	}
	pipes, err := c.Resources.copyPipes(ctx, c.Dataset)
	if err != nil {
		return in, err
	}
	defer pipes.remove()
	for _, note := range pipes.notes {
		in.Notes = append(in.Notes, InspectedNote{Text: note})
	}
	ds, err := dataset.Open(ctx, pipes.uri, imports.DatasetOptions(opts))
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if err := in.open(ds); err != nil {
		return in, err
	}
	in.Graph, err = survey(ctx, ds, opts, c.Resources)
	return in, err
}

// open says what is known before data is read.
func (in *Inspection) open(ds dataset.Dataset) error {
	in.Tables = dataset.Tables(ds)
	for _, n := range dataset.Notes(ds) {
		in.Notes = append(in.Notes, InspectedNote{Text: n.Text, Warning: n.Ignored})
	}
	files, err := dataset.Files(ds)
	in.Files = make([]InspectedFile, 0, len(files))
	for _, f := range files {
		in.Files = append(in.Files, InspectedFile{Path: f.Path, Bytes: f.Size})
	}
	return err
}

// scratch is a folder for temporary files of work without a run directory. remove deletes it
// unless the user named it.
func (r Resources) scratch() (dir string, remove func(), err error) {
	if r.Scratch != "" {
		if err := rundir.CheckScratch(r.Scratch); err != nil {
			return "", nil, err
		}
		if _, err := vfs.MkdirAll(r.Scratch, 0o777); err != nil {
			return "", nil, fmt.Errorf("--scratch: %w", err)
		}
	}
	return rundir.Temporary(r.Scratch)
}

// temporaryCatalog is a catalogue of files in a folder of its own, which remove deletes.
func temporaryCatalog(ctx context.Context, scratch string) (_ *catalog.Catalog, remove func() error, err error) {
	dir, err := vfs.MkdirTemp(scratch, "ndls-inspect-*", 0o777)
	if err != nil {
		return nil, nil, fmt.Errorf("a folder for temporary files: %w; give --scratch", err)
	}
	remove = func() error { return vfs.RemoveAll(dir) }
	store, err := rundir.Open(ctx, dir, true)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return cat, remove, nil
}

// survey reads the graph. Its files go to a folder that is removed.
func survey(ctx context.Context, ds dataset.Dataset, opts Options, r Resources) (*Survey, error) {
	var s Survey
	if err := withResources(r, imports.PartitionOptions(opts), func(o partition.Options) error {
		cat, drop, err := temporaryCatalog(ctx, o.Scratch)
		if err != nil {
			return err
		}
		s, err = partition.Inspect(ctx, ds, cat, o)
		return cmp.Or(err, drop())
	}); err != nil {
		return nil, err
	}
	return &s, nil
}
