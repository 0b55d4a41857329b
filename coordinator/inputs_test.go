package coordinator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ndls/internal/control"
	"ndls/internal/storage"
)

// TestDigestBeside has digests made while the partition reads, whichever ends or fails first.
func TestDigestBeside(t *testing.T) {
	broken, torn := errors.New("a broken edge"), errors.New("a torn file")
	for _, x := range []struct {
		name         string
		files        []InputFile
		digest, read func(ctx context.Context) error
		want         error
		digests      string
	}{
		{"both end", []InputFile{{Path: "a"}, {Path: "b", SHA256: "kept"}, {Path: "c", Version: "1"}}, nil, nil, nil, "a kept  "},
		{"all digests are there", []InputFile{{Path: "b", SHA256: "kept"}}, func(context.Context) error { return torn }, nil, nil, "kept "},
		{"the partition fails", []InputFile{{Path: "a"}}, until, func(context.Context) error { return broken }, broken, " "},
		{"the digest fails", []InputFile{{Path: "a"}}, func(context.Context) error { return torn }, until, torn, " "},
		{"the digest fails last", []InputFile{{Path: "a"}}, func(context.Context) error {
			time.Sleep(20 * time.Millisecond)
			return torn
		}, nil, torn, " "},
	} {
		rec := &Record{Inputs: x.files}
		j := &Job{Digest: func(ctx context.Context, files []InputFile) error {
			if x.digest != nil {
				return x.digest(ctx)
			}
			for i := range files {
				files[i].SHA256 = files[i].Path
			}
			return nil
		}}
		ctx, finish := j.digestBeside(context.Background(), rec)
		var err error
		if x.read != nil {
			err = x.read(ctx)
		}
		if err := finish(err); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
		got := ""
		for _, f := range rec.Inputs {
			got += f.SHA256 + " "
		}
		if got != x.digests {
			t.Errorf("%s: digests %q, want %q", x.name, got, x.digests)
		}
	}
}

// until waits for the end of ctx.
func until(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestInterruptedInputs goes on with a partition that was interrupted before digests were made: its
// files are told apart by path, size and time alone.
func TestInterruptedInputs(t *testing.T) {
	was := InputFile{Path: "edges", Size: 7, Modified: time.Unix(1, 0)}
	now := was
	j := &Job{Store: storage.NewMem(), Files: []InputFile{now}, Digest: func(context.Context, []InputFile) error { return errors.New("digested") }}
	rec := &Record{Inputs: []InputFile{was}}
	if err := j.compareInputs(context.Background(), rec); err != nil {
		t.Errorf("the same file: %v", err)
	}
	j.Files[0].Modified = time.Unix(2, 0)
	if err := j.compareInputs(context.Background(), rec); !errors.Is(err, control.ErrPlanMismatch) || !strings.Contains(err.Error(), "edges was moved or written to") {
		t.Errorf("a file that was written to: %v", err)
	}
}
