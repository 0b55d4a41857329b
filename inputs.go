package ndls

import (
	"context"

	"ndls/coordinator"
	"ndls/dataset"
	"ndls/stage/imports"
)

// inputFiles lists the files of the job's dataset, without digests; none where the job
// names no dataset.
func (j job) inputFiles(ctx context.Context, plan Options) ([]coordinator.InputFile, error) {
	if j.Dataset == "" {
		return nil, nil
	}
	inputs, err := dataset.Inputs(ctx, j.Dataset, imports.DatasetOptions(plan))
	var files []coordinator.InputFile
	for _, in := range inputs {
		files = append(files, coordinator.InputFile{
			Path: in.Path, Size: in.Size, Modified: in.Modified, Device: in.Device,
			Inode: in.Inode, Changed: in.Changed, Version: in.Version,
		})
	}
	return files, err
}

// digestInputs fills in the digests of files that inputFiles has listed.
func digestInputs(ctx context.Context, files []coordinator.InputFile) error {
	inputs := make([]dataset.Input, len(files))
	for i, f := range files {
		inputs[i] = dataset.Input{
			Path: f.Path, Size: f.Size, Modified: f.Modified, Device: f.Device, Inode: f.Inode, Changed: f.Changed,
			Version: f.Version,
		}
	}
	if err := dataset.Digest(ctx, inputs); err != nil {
		return err
	}
	for i := range files {
		in := inputs[i]
		files[i].SHA256, files[i].Device, files[i].Inode, files[i].Changed = in.SHA256, in.Device, in.Inode, in.Changed
	}
	return nil
}
