package coordinator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
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
		{"both end", []InputFile{{Path: "a"}, {Path: "b", Digest: "kept"}, {Path: "c", Version: "1"}}, nil, nil, nil, "a kept  "},
		{"all digests are there", []InputFile{{Path: "b", Digest: "kept"}}, func(context.Context) error { return torn }, nil, nil, "kept "},
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
				files[i].Digest = files[i].Path
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
			got += f.Digest + " "
		}
		if got != x.digests {
			t.Errorf("%s: digests %q, want %q", x.name, got, x.digests)
		}
	}
}

// TestDigestAfterwards has digests made once the only worker has read the files, and not if it failed.
func TestDigestAfterwards(t *testing.T) {
	broken, torn := errors.New("a broken edge"), errors.New("a torn file")
	for _, x := range []struct {
		read, digest, want error
		digests            string
	}{
		{nil, nil, nil, "a"},
		{broken, torn, broken, ""},
		{nil, torn, torn, ""},
	} {
		ended := false
		j := &Job{Alone: true, Digest: func(_ context.Context, files []InputFile) error {
			if !ended {
				t.Error("a digest is made while the partition reads")
			}
			files[0].Digest = files[0].Path
			return x.digest
		}}
		rec := &Record{Inputs: []InputFile{{Path: "a"}}}
		_, finish := j.digestBeside(context.Background(), rec)
		ended = true
		if err := finish(x.read); !errors.Is(err, x.want) || rec.Inputs[0].Digest != x.digests {
			t.Errorf("reading %v, digest %v: %v, digest %q", x.read, x.digest, err, rec.Inputs[0].Digest)
		}
	}
}

// until waits for the end of ctx.
func until(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestInterruptedInputs goes on with a partition that was interrupted before digests were made: its
// files are told apart by what the file system says of them alone.
func TestInterruptedInputs(t *testing.T) {
	was := InputFile{Path: "edges", Size: 7, Modified: time.Unix(1, 0), Device: 1, Inode: 2, Changed: time.Unix(1, 5)}
	now := was
	j := &Job{Store: storagetest.NewMem(), Files: []InputFile{now}, Digest: func(context.Context, []InputFile) error { return errors.New("digested") }}
	rec := &Record{Inputs: []InputFile{was}}
	if err := j.compareInputs(context.Background(), rec); err != nil {
		t.Errorf("the same file: %v", err)
	}
	j.Files[0].Changed = time.Unix(2, 5)
	if err := j.compareInputs(context.Background(), rec); !errors.Is(err, control.ErrPlanMismatch) || !strings.Contains(err.Error(), "edges was moved or written to") {
		t.Errorf("a file that was written to: %v", err)
	}
}

// TestInputsByTheirBytes compares files that differ in one thing with those of the record: where device, inode and time of
// the last change do not prove that nobody has written to a file, its digest decides.
func TestInputsByTheirBytes(t *testing.T) {
	was := InputFile{Path: "edges", Size: 7, Modified: time.Unix(1, 0), Device: 1, Inode: 2, Changed: time.Unix(1, 5), Digest: "old"}
	for _, x := range []struct {
		name   string
		now    func(f *InputFile)
		digest string
		reads  int
		same   bool
	}{
		{"nothing", func(*InputFile) {}, "new", 0, true},
		{"another inode", func(f *InputFile) { f.Inode = 3 }, "new", 1, false},
		{"another inode, the same bytes", func(f *InputFile) { f.Inode = 3 }, "old", 1, true},
		{"another device", func(f *InputFile) { f.Device = 3 }, "new", 1, false},
		{"written to, the time restored", func(f *InputFile) { f.Changed = time.Unix(9, 5) }, "new", 1, false},
		{"touched", func(f *InputFile) { f.Changed, f.Modified = time.Unix(9, 5), time.Unix(9, 5) }, "old", 1, true},
		{"a file system that proves nothing", func(f *InputFile) { f.Device, f.Inode, f.Changed = 0, 0, time.Time{} }, "new", 1, false},
		{"another size", func(f *InputFile) { f.Size = 8 }, "old", 0, false},
	} {
		now, reads := was, 0
		now.Digest = ""
		x.now(&now)
		j := &Job{Store: storagetest.NewMem(), Files: []InputFile{now}, Digest: func(_ context.Context, files []InputFile) error {
			reads++
			files[0].Digest = x.digest
			return nil
		}}
		rec := &Record{Inputs: []InputFile{was}}
		err := j.compareInputs(context.Background(), rec)
		if (err == nil) != x.same || err != nil && !errors.Is(err, control.ErrPlanMismatch) || reads != x.reads {
			t.Errorf("%s: %v after %d digests", x.name, err, reads)
		}
		if now.Digest = "old"; x.same && x.reads > 0 && rec.Inputs[0] != now {
			t.Errorf("%s: the record keeps %+v, not %+v", x.name, rec.Inputs[0], now)
		}
	}
	// A record of a version before these fields, and a file that has settled only since.
	rec := &Record{Inputs: []InputFile{{Path: "edges", Size: 7, Modified: time.Unix(1, 0), Digest: "old"}}}
	j := &Job{Store: storagetest.NewMem(), Files: []InputFile{was}, Digest: func(_ context.Context, files []InputFile) error { files[0].Digest = "old"; return nil }}
	if err := j.compareInputs(context.Background(), rec); err != nil || rec.Inputs[0] != was {
		t.Errorf("%v: %+v", err, rec.Inputs)
	}
}
