// Package storagetest is the contract of a storage.Store as tests, run by every
// implementation.
package storagetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"ndls/internal/storage"
)

// Run checks the stores that open returns, an empty one at each call.
func Run(t *testing.T, open func() storage.Store) {
	for name, check := range map[string]func(*testing.T, storage.Store){
		"commit publishes":         commitPublishes,
		"uncommitted is invisible": uncommittedIsInvisible,
		"abort leaves nothing":     abortLeavesNothing,
		"replace is atomic":        replaceIsAtomic,
		"sizes and offsets":        sizesAndOffsets,
		"list":                     list,
		"remove":                   remove,
		"missing files":            missingFiles,
		"bad names":                badNames,
		"cancelled context":        cancelledContext,
		"concurrent use":           concurrentUse,
	} {
		t.Run(name, func(t *testing.T) { check(t, open()) })
	}
}

// Write commits data under name.
func Write(t testing.TB, s storage.Store, name string, data []byte) storage.Digest {
	t.Helper()
	d, err := write(s, name, data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(s storage.Store, name string, data []byte) (storage.Digest, error) {
	w, err := s.Create(context.Background(), name)
	if err != nil {
		return storage.Digest{}, err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return storage.Digest{}, err
	}
	return w.Commit(context.Background())
}

// Read returns the bytes of a committed file.
func Read(t testing.TB, s storage.Store, name string) []byte {
	t.Helper()
	data, err := read(s, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func read(s storage.Store, name string) ([]byte, error) {
	r, err := s.Open(context.Background(), name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, r.Size())
	if n, err := r.ReadAt(data, 0); n < len(data) {
		return nil, err
	}
	return data, nil
}

func random(n int) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func commitPublishes(t *testing.T, s storage.Store) {
	data := []byte("some bytes")
	sum := sha256.Sum256(data)
	want := storage.Digest{Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	if d := Write(t, s, "a/b/file", data); d != want {
		t.Errorf("digest %+v, want %+v", d, want)
	}
	if got := Read(t, s, "a/b/file"); !bytes.Equal(got, data) {
		t.Errorf("read %q, want %q", got, data)
	}
	info, err := s.Stat(context.Background(), "a/b/file")
	if want := (storage.Info{Name: "a/b/file", Size: 10}); err != nil || info != want {
		t.Errorf("stat %+v, %v, want %+v", info, err, want)
	}
}

func uncommittedIsInvisible(t *testing.T, s storage.Store) {
	w, err := s.Create(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := w.Write(random(3 << 20)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(context.Background(), "f"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("open gives %v, want ErrNotExist", err)
	}
	infos, err := s.List(context.Background(), "")
	if err != nil || len(infos) != 1 || !infos[0].Attempt || !strings.HasPrefix(infos[0].Name, "f") {
		t.Fatalf("list gives %+v, %v, want one attempt at f", infos, err)
	}
	if _, err := s.Open(context.Background(), infos[0].Name); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("open of the attempt gives %v, want ErrNotExist", err)
	}
}

func abortLeavesNothing(t *testing.T, s storage.Store) {
	w, err := s.Create(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	w.Abort()
	if infos, err := s.List(context.Background(), ""); err != nil || len(infos) != 0 {
		t.Errorf("list gives %+v, %v, want nothing", infos, err)
	}
	if _, err := w.Commit(context.Background()); err == nil {
		t.Error("commit after abort succeeds")
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("write after abort succeeds")
	}
}

func replaceIsAtomic(t *testing.T, s storage.Store) {
	Write(t, s, "f", []byte("old"))
	old, err := s.Open(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	w, err := s.Create(context.Background(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("newer")); err != nil {
		t.Fatal(err)
	}
	if got := Read(t, s, "f"); string(got) != "old" {
		t.Errorf("before commit: %q, want the old bytes", got)
	}
	if _, err := w.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if got := Read(t, s, "f"); string(got) != "newer" {
		t.Errorf("after commit: %q, want the new bytes", got)
	}
	got := make([]byte, 3)
	if _, err := old.ReadAt(got, 0); err != nil && err != io.EOF || string(got) != "old" {
		t.Errorf("open reader sees %q, %v, want the old bytes", got, err)
	}
}

func sizesAndOffsets(t *testing.T, s storage.Store) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5<<20 + 123} {
		data := random(size)
		name := fmt.Sprintf("size-%d", size)
		if d := Write(t, s, name, data); d.Bytes != int64(size) {
			t.Errorf("%s: %d bytes committed", name, d.Bytes)
		}
		r, err := s.Open(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		if r.Size() != int64(size) {
			t.Errorf("%s: size %d", name, r.Size())
		}
		for _, off := range []int{0, 1, 4095, 4096, size / 2, size - 1, size} {
			for _, n := range []int{0, 1, 4096, 70_000, size} {
				if off >= 0 && off <= size {
					readAt(t, r, name, data, off, n)
				}
			}
		}
		if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
			t.Errorf("%s: read at a negative offset succeeds", name)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func readAt(t *testing.T, r storage.Reader, name string, data []byte, off, n int) {
	t.Helper()
	got := make([]byte, n)
	m, err := r.ReadAt(got, int64(off))
	want := data[off:min(off+n, len(data))]
	if !bytes.Equal(got[:m], want) {
		t.Errorf("%s: %d bytes at %d are wrong (%d came)", name, n, off, m)
	}
	if short := len(want) < n; short && err != io.EOF || !short && err != nil && err != io.EOF {
		t.Errorf("%s: %d bytes at %d: error %v", name, n, off, err)
	}
}

func list(t *testing.T, s storage.Store) {
	for _, name := range []string{"b/2", "a", "b/1", "bc"} {
		Write(t, s, name, []byte(name))
	}
	for prefix, want := range map[string][]string{
		"":   {"a", "b/1", "b/2", "bc"},
		"b":  {"b/1", "b/2", "bc"},
		"b/": {"b/1", "b/2"},
		"z":  nil,
	} {
		infos, err := s.List(context.Background(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range infos {
			got = append(got, i.Name)
			if i.Size != int64(len(i.Name)) || i.Attempt {
				t.Errorf("list: %+v", i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("list %q gives %q, want %q", prefix, got, want)
		}
	}
}

func remove(t *testing.T, s storage.Store) {
	ctx := context.Background()
	Write(t, s, "d/f", []byte("x"))
	w, err := s.Create(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	infos, err := s.List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range append(infos, storage.Info{Name: "never/was"}) {
		if err := s.Remove(ctx, i.Name); err != nil {
			t.Errorf("remove %s: %v", i.Name, err)
		}
	}
	w.Abort()
	if infos, err := s.List(ctx, ""); err != nil || len(infos) != 0 {
		t.Errorf("list gives %+v, %v, want nothing", infos, err)
	}
	if _, err := s.Stat(ctx, "d/f"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("stat gives %v, want ErrNotExist", err)
	}
}

func missingFiles(t *testing.T, s storage.Store) {
	ctx := context.Background()
	Write(t, s, "folder/f", nil)
	for _, name := range []string{"no", "no/such", "folder", "folder/f2"} {
		if _, err := s.Open(ctx, name); !errors.Is(err, storage.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("open %s gives %v, want ErrNotExist and the name", name, err)
		}
		if _, err := s.Stat(ctx, name); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("stat %s gives %v, want ErrNotExist", name, err)
		}
	}
}

func badNames(t *testing.T, s storage.Store) {
	ctx := context.Background()
	for _, name := range []string{"", ".", "..", "../x", "/x", "a//b", "a/", "a/../../b"} {
		if _, err := s.Create(ctx, name); err == nil {
			t.Errorf("create %q succeeds", name)
		}
		if _, err := s.Open(ctx, name); err == nil {
			t.Errorf("open %q succeeds", name)
		}
		if err := s.Remove(ctx, name); err == nil {
			t.Errorf("remove %q succeeds", name)
		}
	}
	if _, err := s.Create(ctx, "x.tmp"); err == nil {
		t.Error("create of a name that attempts have succeeds")
	}
}

func cancelledContext(t *testing.T, s storage.Store) {
	Write(t, s, "f", []byte("x"))
	w, err := s.Create(context.Background(), "g")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, create := s.Create(ctx, "h")
	_, open := s.Open(ctx, "f")
	_, stat := s.Stat(ctx, "f")
	_, list := s.List(ctx, "")
	_, commit := w.Commit(ctx)
	for what, err := range map[string]error{
		"create": create, "open": open, "stat": stat, "list": list, "commit": commit, "remove": s.Remove(ctx, "f"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s gives %v, want context.Canceled", what, err)
		}
	}
	if infos, err := s.List(context.Background(), ""); err != nil || len(infos) != 1 {
		t.Errorf("list gives %+v, %v, want f alone", infos, err)
	}
}

func concurrentUse(t *testing.T, s storage.Store) {
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			name, data := fmt.Sprintf("dir/%d", i), random(100_000+i)
			if _, err := write(s, name, data); err != nil {
				return err
			}
			if _, err := write(s, "dir/shared", data); err != nil {
				return err
			}
			got, err := read(s, name)
			if err == nil && !bytes.Equal(got, data) {
				err = fmt.Errorf("%s has other bytes", name)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if infos, err := s.List(context.Background(), ""); err != nil || len(infos) != 9 {
		t.Errorf("list gives %d files, %v, want 9", len(infos), err)
	}
}
