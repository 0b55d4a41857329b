package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ndls/internal/control"
	"ndls/internal/progress"
)

// alike reports whether two files certainly have the same bytes.
func alike(f, g InputFile) bool {
	if f.Path != g.Path || f.Size != g.Size || f.Version != g.Version {
		return false
	}
	return f.Version != "" || proven(f) && f.Modified.Equal(g.Modified) && f.Device == g.Device && f.Inode == g.Inode && f.Changed.Equal(g.Changed)
}

// proven reports whether the metadata of a file changes whenever its bytes change.
func proven(f InputFile) bool { return !f.Changed.IsZero() }

// digestFirst computes, before the partition begins, the digests of the files whose metadata cannot prove later that the bytes are the
// same. An interrupted partition continues only if their digests are equal.
func (j *Job) digestFirst(ctx context.Context, files []InputFile) error {
	for i, f := range files {
		if f.Version == "" && f.Digest == "" && !proven(f) {
			if err := j.digest(ctx, files[i:i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// digestBeside computes the missing digests of the files in rec: while other processes read them for the partition, or after this one has
// read them, which then knows the hashes of most of their blocks. The partition runs in the returned context, which ends if a digest
// fails. The caller passes the error of the partition to finish, which returns the first error of both. Without an error, rec then has the
// digests.
func (j *Job) digestBeside(ctx context.Context, rec *Record) (_ context.Context, finish func(error) error) {
	files := slices.DeleteFunc(slices.Clone(rec.Inputs), func(f InputFile) bool { return f.Digest != "" || f.Version != "" })
	if len(files) == 0 {
		return ctx, func(err error) error { return err }
	}
	note := func() {
		for i, f := range rec.Inputs {
			if at := slices.IndexFunc(files, func(g InputFile) bool { return g.Path == f.Path }); at >= 0 {
				rec.Inputs[i] = files[at]
			}
		}
	}
	if j.Alone {
		return ctx, func(err error) error {
			if err == nil {
				err = j.digest(ctx, files)
			}
			if err == nil {
				note()
			}
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var first, failed error // first is the one that has ended the partition
	done := make(chan struct{})
	go func() {
		defer close(done)
		if failed = j.digest(progress.WithSink(ctx, nil), files); failed != nil && ctx.Err() == nil {
			first = failed
			cancel(failed)
		}
	}()
	return ctx, func(err error) error {
		if err != nil {
			cancel(err)
		}
		<-done
		cancel(nil)
		if err = cmp.Or(first, err, failed); err == nil {
			note()
		}
		return err
	}
}

// digest computes the digests of files.
func (j *Job) digest(ctx context.Context, files []InputFile) error {
	if len(files) == 0 {
		return nil
	}
	return j.Digest(ctx, files)
}

// compareInputs refuses files that differ from those from which the partition was made, or is being made. It reads the files whose metadata
// proves nothing, and stores the present path and times of equal files in rec.
func (j *Job) compareInputs(ctx context.Context, rec *Record) error {
	if len(j.Files) == 0 || len(rec.Inputs) == 0 || slices.EqualFunc(j.Files, rec.Inputs, alike) {
		return nil
	}
	if len(j.Files) != len(rec.Inputs) {
		return j.otherInputs(differentFiles(rec.Inputs, j.Files))
	}
	files := slices.Clone(rec.Inputs)
	var changed []string
	for i, was := range rec.Inputs {
		now := j.Files[i]
		if alike(now, was) {
			continue
		}
		if now.Size != was.Size {
			changed = append(changed, fmt.Sprintf("%s has %d bytes now and had %d", now.Path, now.Size, was.Size))
			continue
		}
		if was.Digest == "" && was.Version == "" {
			changed = append(changed, now.Path+" was moved or written to while the partition was made")
			continue
		}
		if now.Version != "" {
			changed = append(changed, fmt.Sprintf("%s was written again: its version is %s now and was %s", now.Path, now.Version, was.Version))
			continue
		}
		one := []InputFile{now}
		if err := j.digest(ctx, one); err != nil {
			return err
		}
		if one[0].Digest != was.Digest {
			changed = append(changed, fmt.Sprintf("%s has other bytes: its digest is %s now and was %s", now.Path, one[0].Digest, was.Digest))
		}
		files[i] = one[0]
	}
	if len(changed) > 0 {
		return j.otherInputs(changed)
	}
	rec.Inputs = files
	return nil
}

// otherInputs returns the error for files that differ from those of the partition.
func (j *Job) otherInputs(changed []string) error {
	return fmt.Errorf("the dataset is not the one from which %s was made:\n  %s\nuse the files as they were, another --run, or --resume=false with ndls partition or ndls run to take the files as they are now: %w",
		j.Store.URI(), strings.Join(changed, "\n  "), control.ErrPlanMismatch)
}

// differentFiles returns which files were added and which are gone.
func differentFiles(was, now []InputFile) (changed []string) {
	lacks := func(files []InputFile, f InputFile) bool {
		return !slices.ContainsFunc(files, func(g InputFile) bool { return g.Path == f.Path })
	}
	for _, f := range now {
		if lacks(was, f) {
			changed = append(changed, f.Path+" was not there")
		}
	}
	for _, f := range was {
		if lacks(now, f) {
			changed = append(changed, f.Path+" is not there now")
		}
	}
	return changed
}
