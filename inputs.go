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
		files = append(files, coordinator.InputFile(in))
	}
	return files, err
}

// digestInputs fills in the digests of files that inputFiles has listed.
func digestInputs(ctx context.Context, files []coordinator.InputFile) error {
	inputs := make([]dataset.Input, len(files))
	for i, f := range files {
		inputs[i] = dataset.Input(f)
	}
	if err := dataset.Digest(ctx, inputs); err != nil {
		return err
	}
	for i, in := range inputs {
		files[i] = coordinator.InputFile(in)
	}
	return nil
}
