package storage_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLocal(t *testing.T) *storage.Local {
	t.Helper()
	l, err := storage.NewLocal(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestContract(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) storage.Store{
		"local": func(t *testing.T) storage.Store { return newLocal(t) },
		"temporary": func(t *testing.T) storage.Store {
			l, err := storage.NewTemporary(filepath.Join(t.TempDir(), "files"))
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
		"over":     func(*testing.T) storage.Store { return storage.NewOver(storagetest.NewMem(), storagetest.NewMem()) },
		"mem":      func(*testing.T) storage.Store { return storagetest.NewMem() },
		"faulty":   func(*testing.T) storage.Store { return storagetest.NewFaulty(storagetest.NewMem(), 0) },
		"counting": func(*testing.T) storage.Store { return storage.NewCounting(storagetest.NewMem()) },
		"cached": func(t *testing.T) storage.Store {
			return copying{newCached(t, storagetest.NewMem(), t.TempDir(), 8<<20)}
		},
	} {
		t.Run(name, func(t *testing.T) { storagetest.Run(t, open) })
	}
}

// TestOver reads the files of two stores, and leaves the one below as it was.
func TestOver(t *testing.T) {
	ctx := t.Context()
	below := storagetest.NewMem()
	put := func(s storage.Store, name, text string) {
		t.Helper()
		w, err := s.Create(ctx, name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err == nil {
			_, err = w.Commit(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	get := func(s storage.Store, name string) string {
		t.Helper()
		r, err := s.Open(ctx, name)
		if errors.Is(err, storage.ErrNotExist) {
			return "nothing"
		}
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		text := make([]byte, r.Size())
		if _, err := r.ReadAt(text, 0); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	put(below, "a", "below")
	put(below, "b", "below")
	s := storage.NewOver(storagetest.NewMem(), below)
	put(s, "b", "above")
	put(s, "c", "above")
	for name, want := range map[string]string{"a": "below", "b": "above", "c": "above", "d": "nothing"} {
		if got := get(s, name); got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	all, err := s.List(ctx, "")
	if err != nil || len(all) != 3 || all[0].Name != "a" || all[2].Name != "c" {
		t.Errorf("%v, %v", all, err)
	}
	for _, name := range []string{"a", "b"} {
		if err := s.Remove(ctx, name); err != nil {
			t.Fatal(err)
		}
		if get(s, name) != "below" || get(below, name) != "below" {
			t.Errorf("%s went from the store below", name)
		}
	}
}

func newCached(t *testing.T, s storage.Store, dir string, limit int64) *storage.Cached {
	t.Helper()
	c, err := storage.NewCached(s, dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return c
}

// TestLocalCreateNewAfterALostReply: a server of NFS may make a link, lose the
// reply, and refuse the request when it comes again.
func TestLocalCreateNewAfterALostReply(t *testing.T) {
	ctx := context.Background()
	l := newLocal(t)
	w, err := l.CreateNew(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	infos, err := l.List(ctx, "")
	if err != nil || len(infos) != 1 {
		t.Fatalf("list gives %+v, %v", infos, err)
	}
	if err := os.Link(l.Path(infos[0].Name), l.Path("f")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx); err != nil {
		t.Errorf("commit gives %v", err)
	}
	infos, err = l.List(ctx, "")
	if err != nil || len(infos) != 1 || infos[0].Attempt {
		t.Errorf("list gives %+v, %v, want f alone", infos, err)
	}
}

func TestLocalPath(t *testing.T) {
	l := newLocal(t)
	storagetest.Write(t, l, "a/b", []byte("x"))
	if got, err := os.ReadFile(l.Path("a/b")); err != nil || string(got) != "x" {
		t.Errorf("%s holds %q, %v", l.Path("a/b"), got, err)
	}
}

func TestLocalReportsLostFolder(t *testing.T) {
	l := newLocal(t)
	w, err := l.Create(context.Background(), "sub/f")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := os.RemoveAll(l.Path("sub")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(context.Background()); err == nil || !strings.Contains(err.Error(), l.Path("sub/f")) {
		t.Errorf("commit gives %v, want an error that names the file", err)
	}
}

func TestLocalFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount a small file system here: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	l, err := storage.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.Create(context.Background(), "big")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(make([]byte, 6<<20))
	if err == nil {
		_, err = w.Commit(context.Background())
	}
	w.Abort()
	if !errors.Is(err, storage.ErrDisk) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), l.Path("big")) {
		t.Errorf("6 MiB on a disk of 4 gives %v, want ErrDisk, the reason and the file", err)
	}
	if infos, err := l.List(context.Background(), ""); err != nil || len(infos) != 0 {
		t.Errorf("list gives %+v, %v, want nothing left", infos, err)
	}
	storagetest.Write(t, l, "small", make([]byte, 1000))
}

func TestLocalIgnoresLinks(t *testing.T) {
	l := newLocal(t)
	if err := os.Symlink(t.TempDir(), l.Path("link")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Open(context.Background(), "link"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("open gives %v, want ErrNotExist", err)
	}
}

func TestFaultyFailsEachOperationOnce(t *testing.T) {
	ctx := context.Background()
	sequence := func(s storage.Store) error {
		w, err := s.Create(ctx, "f")
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := w.Write([]byte("x")); err != nil {
			return err
		}
		if _, err := w.Commit(ctx); err != nil {
			return err
		}
		if _, err := s.Stat(ctx, "f"); err != nil {
			return err
		}
		if _, err := s.List(ctx, ""); err != nil {
			return err
		}
		r, err := s.Open(ctx, "f")
		if err != nil {
			return err
		}
		defer r.Close()
		if _, err := r.ReadAt(make([]byte, 1), 0); err != nil {
			return err
		}
		return s.Remove(ctx, "f")
	}
	count := storagetest.NewFaulty(storagetest.NewMem(), 0)
	if err := sequence(count); err != nil || count.Ops() != 8 {
		t.Fatalf("%d operations, %v, want 8", count.Ops(), err)
	}
	for at := int64(1); at <= count.Ops(); at++ {
		inner := storagetest.NewMem()
		f := storagetest.NewFaulty(inner, at)
		if err := sequence(f); !errors.Is(err, storage.ErrDisk) || f.Ops() != at {
			t.Errorf("failure %d: %v after %d operations", at, err, f.Ops())
		}
		infos, err := inner.List(ctx, "")
		if wantFile := at > 3; err != nil || (len(infos) == 1) != wantFile {
			t.Errorf("failure %d leaves %+v, %v", at, infos, err)
		}
	}
}

func TestCrashCloneKeepsWhatWasCommitted(t *testing.T) {
	m := storagetest.NewMem()
	storagetest.Write(t, m, "done", []byte("whole"))
	w, err := m.Create(context.Background(), "open")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := w.Write([]byte("partial!")); err != nil {
		t.Fatal(err)
	}
	c := m.CrashClone()
	storagetest.Write(t, m, "done", []byte("later"))
	if got := storagetest.Read(t, c, "done"); string(got) != "whole" {
		t.Errorf("clone has %q", got)
	}
	infos, err := c.List(context.Background(), "open")
	if err != nil || len(infos) != 1 || !infos[0].Attempt || infos[0].Size >= 8 {
		t.Errorf("clone lists %+v, %v, want a part of the attempt", infos, err)
	}
	if err := c.Remove(context.Background(), infos[0].Name); err != nil {
		t.Error(err)
	}
}

func TestFlipByte(t *testing.T) {
	m := storagetest.NewMem()
	storagetest.Write(t, m, "f", []byte{1, 2, 3})
	if err := m.FlipByte("f", 1); err != nil {
		t.Fatal(err)
	}
	if got := storagetest.Read(t, m, "f"); !bytes.Equal(got, []byte{1, 0xfd, 3}) {
		t.Errorf("got %v", got)
	}
	if err := m.FlipByte("g", 0); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("flip in a missing file gives %v", err)
	}
}

func TestCounting(t *testing.T) {
	c := storage.NewCounting(storagetest.NewMem())
	storagetest.Write(t, c, "f", make([]byte, 1000))
	storagetest.Read(t, c, "f")
	if c.BytesWritten() != 1000 || c.BytesRead() != 1000 {
		t.Errorf("%d written, %d read", c.BytesWritten(), c.BytesRead())
	}
}

func TestNewLocalNamesTheFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.NewLocal(filepath.Join(file, "sub")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("folder below a file gives %v", err)
	}
}

// copying opens every file by its bytes, so that it is read from a copy.
type copying struct{ *storage.Cached }

func (c copying) Open(ctx context.Context, name string) (storage.Reader, error) {
	data, err := storage.Get(ctx, c.Cached, name, 1<<30)
	if err != nil {
		return nil, err
	}
	return c.OpenDigest(ctx, name, digestOf(data))
}
